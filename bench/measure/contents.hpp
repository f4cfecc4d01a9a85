// What the bytes are: a cheap function of seed, worker, iteration and place, so that every byte can
// be checked at the speed of memory, and no two neighbours, workers or iterations look alike.
//
// A worker's bytes are words that grow by a constant. Iteration i begins `shift(i)` bytes further
// in that sequence, so a buffer that is filled once serves every iteration: what an iteration
// writes is a window of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/hash.hpp"

namespace penstock::measure {

class Contents {
 public:
  // `worker`: another for every worker of every file. `shift_bytes` between iterations: a multiple
  // of 8.
  Contents(uint64_t seed, int worker, int64_t shift_bytes)
      : first_(mix(mix(0x6d656173757265u, seed), uint64_t(worker))), shift_bytes_(shift_bytes) {}

  // Iterations this far apart are alike: a prime, so that no power of two of them is.
  static constexpr int64_t kShifts = 61;

  // Where iteration i's window begins in the sequence.
  int64_t shift(int64_t iteration) const noexcept { return iteration % kShifts * shift_bytes_; }
  // out[0, n) = bytes [begin, begin + n) of the sequence.
  void fill(std::byte* out, int64_t begin, int64_t n) const noexcept {
    constexpr int64_t kWord = 8;
    uint64_t word = first_ + uint64_t(begin / kWord) * kStep;
    if (const int64_t within = begin % kWord; within != 0) {
      const int64_t part = std::min(n, kWord - within);
      std::memcpy(out, reinterpret_cast<const std::byte*>(&word) + within, size_t(part));
      out += part;
      n -= part;
      word += kStep;
    }
    const int64_t words = n / kWord;
    for (int64_t i = 0; i < words; ++i) {
      const uint64_t value = word + uint64_t(i) * kStep;
      std::memcpy(out + i * kWord, &value, size_t(kWord));
    }
    word += uint64_t(words) * kStep;
    std::memcpy(out + words * kWord, &word, size_t(n % kWord));
  }

 private:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15u;  // odd: no word comes twice

  uint64_t first_;
  int64_t shift_bytes_;
};

}  // namespace penstock::measure
