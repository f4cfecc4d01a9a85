// What tells one start of a machine from another.
#pragma once

#include <cstdint>

namespace penstock {

// Of this start of this machine's kernel; 0 where that is not told.
uint64_t boot_number();

}  // namespace penstock
