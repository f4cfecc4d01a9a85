// The options of a mechanism in the text of a method: uring(direct, depth=8), mmap(window=file).
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "engine/method.hpp"

namespace penstock::engine {

// One option as it is written; the method has its mechanism. An option that the mechanism does not
// take, one given twice and a value out of its limits are argument errors that name it.
Result<void> set_mechanism_option(std::string_view key, std::string_view value, Method& method);
// "uring(direct, depth=8)"; what is left to the mechanism is left out.
std::string spell_mechanism(const Method& method);
// Whether mechanism and algorithm take what the method says.
Result<void> check_mechanism_options(const Method& method);

}  // namespace penstock::engine
