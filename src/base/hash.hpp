// A 64-bit mixing hash for structures that ranks compare. It must give the
// same value on every rank of a job, so it never sees addresses.
#pragma once

#include <cstdint>

namespace penstock {

using Hash = uint64_t;

// One step of a sequential hash (the splitmix64 finaliser over seed and value).
constexpr Hash mix(Hash seed, uint64_t value) noexcept {
  uint64_t z = seed ^ (value + 0x9e3779b97f4a7c15u + (seed << 6) + (seed >> 2));
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace penstock
