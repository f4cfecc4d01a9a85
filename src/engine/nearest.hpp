// Did you mean ...? Every message about an unknown word names the nearest valid one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace penstock::engine {

// The nearest of `valid` to a misspelt `given` by edit distance; empty when none is near.
std::string nearest(std::string_view given, const std::vector<std::string_view>& valid);

// `"two_fase" is not known; did you mean "two_phase"? Valid: auto, individual, two_phase`
std::string not_known(std::string_view given, const std::vector<std::string_view>& valid);

}  // namespace penstock::engine
