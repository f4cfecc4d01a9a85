// Which functions the program itself (its executable, not the libraries that it loads) takes from
// elsewhere, by the names that the linker noted. Of an interpreter that says nothing of the script.
#pragma once

#include <functional>
#include <string_view>

namespace penstock {

// Whether `wanted` is true of one of the names. false where the program tells none.
bool program_imports(const std::function<bool(std::string_view name)>& wanted);

}  // namespace penstock
