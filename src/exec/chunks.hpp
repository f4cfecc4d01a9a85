// How ranks cut what they send each other, and a fixed number of equal buffers for messages in
// flight, allocated once.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "base/error.hpp"

namespace penstock::exec {

// A power of two, so that cuts between messages keep the granule of a coverage. Sanitizers have
// small ones, since all memory that is reserved for them costs time to watch.
#ifdef PENSTOCK_SMALL_MESSAGES
inline constexpr int64_t kMessageBytes = int64_t{64} << 10;
#else
inline constexpr int64_t kMessageBytes = int64_t{256} << 10;
#endif
inline constexpr int kChunks = 8;  // in each direction

class Chunks {
 public:
  Result<void> reserve(int count, int64_t bytes) {
    if (!free_.empty()) return {};
    if (Result<void> r = memory_.reserve(size_t(count) * size_t(bytes)); !r) return r;
    bytes_ = bytes;
    for (int i = count - 1; i >= 0; --i) free_.push_back(i);
    return {};
  }
  bool available() const noexcept { return !free_.empty(); }
  int take() {
    const int i = free_.back();
    free_.pop_back();
    return i;
  }
  void give_back(int i) { free_.push_back(i); }
  std::span<std::byte> operator[](int i) const noexcept {
    return {memory_.data() + int64_t{i} * bytes_, size_t(bytes_)};
  }
  // Their memory as one, for who knows that none is taken; empty before reserve().
  std::span<std::byte> all() const noexcept { return memory_.first(memory_.size()); }

 private:
  AlignedBuffer memory_;
  int64_t bytes_ = 0;
  std::vector<int> free_;
};

// Which messages on their way are in a chunk.
class ChunksSent {
 public:
  void sent(int message, int chunk) {
    if (chunk_of_.size() <= size_t(message)) chunk_of_.resize(size_t(message) + 1, kInPlace);
    chunk_of_[size_t(message)] = chunk;
  }
  // The message has arrived: its chunk, if it was in one, is free.
  void arrived(int message, Chunks& chunks) {
    const int chunk = std::exchange(chunk_of_[size_t(message)], kInPlace);
    if (chunk != kInPlace) chunks.give_back(chunk);
  }
  static constexpr int kInPlace = -1;

 private:
  std::vector<int> chunk_of_;  // by message number
};

}  // namespace penstock::exec
