// Which functions the program takes from elsewhere, by the names that the linker noted. Of an
// interpreter that says nothing of the script.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace penstock {

// Whether `wanted` is true of one of the names that the program itself imports: its executable, not
// the libraries that it loads. false where the program tells none.
bool program_imports(const std::function<bool(std::string_view name)>& wanted);

// The same of the program and of every library that is loaded now, but of those whose file's name
// (without its folder) `skipped` is true of.
bool anything_imports(const std::function<bool(std::string_view file)>& skipped,
                      const std::function<bool(std::string_view name)>& wanted);

// How often a library was loaded so far: while it stays the same, so do the answers, but for what
// was unloaded.
uint64_t libraries_loaded();

}  // namespace penstock
