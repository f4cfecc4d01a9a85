// Faults sown on purpose, so that the test suites can be tested: a build with
// PENSTOCK_SEEDED_FAULTS obeys the environment variable PENSTOCK_SEEDED_FAULT
// (`make check-the-checks`); in every other build the question is constantly no.
#pragma once

#include <cstdlib>
#include <cstring>

namespace penstock {

#ifdef PENSTOCK_SEEDED_FAULTS
inline bool seeded_fault(const char* name) noexcept {
  const char* chosen = std::getenv("PENSTOCK_SEEDED_FAULT");
  return chosen != nullptr && std::strcmp(chosen, name) == 0;
}
#else
constexpr bool seeded_fault(const char*) noexcept { return false; }
#endif

}  // namespace penstock
