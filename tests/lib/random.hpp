// Numbers drawn from a seed and a path of labels (case, phase, rank): every rank can draw what any
// other rank draws, so that nothing has to be communicated to know what the file should hold.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace suite {

inline uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

class Random {
 public:
  explicit Random(std::initializer_list<uint64_t> path) {
    for (uint64_t label : path) state_ = mix(state_ ^ mix(label));
  }
  uint64_t next() { return state_ = mix(state_); }
  // Inclusive on both sides.
  int64_t between(int64_t low, int64_t high) {
    return low + int64_t(next() % uint64_t(high - low + 1));
  }
  bool chance(int percent) { return between(1, 100) <= percent; }
  template <class T>
  const T& one_of(std::initializer_list<T> values) {
    return *(values.begin() + between(0, int64_t(values.size()) - 1));
  }

 private:
  uint64_t state_ = 0x1234567;
};

// What byte `offset` of a file holds after it was written in the given version. It depends on the
// place alone, so ranks whose bytes really overlap write equal data.
inline uint8_t byte_at(uint64_t version, int64_t offset) {
  return uint8_t(mix(uint64_t(offset) * 31 + version * 0x51ED2701ull) >> 32);
}

}  // namespace suite
