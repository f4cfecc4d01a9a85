// The memory that an iteration writes from or reads into: `len` bytes kept every `stride` bytes, or
// one piece. It holds the whole sequence of contents, so that an iteration is a window of it.
#pragma once

#include <cstdint>
#include <numeric>

#include "base/aligned_buffer.hpp"
#include "base/error.hpp"
#include "contents.hpp"
#include "layout/loop_tree.hpp"

namespace penstock::measure {

struct MemoryShape {
  int64_t len_bytes = 0;  // 0: contiguous
  int64_t stride_bytes = 0;

  bool contiguous() const noexcept { return len_bytes == 0 || len_bytes == stride_bytes; }
  // Where kept byte `kept` lies. For a window it must be the beginning of a chunk.
  int64_t address(int64_t kept) const noexcept {
    return contiguous() ? kept : kept / len_bytes * stride_bytes + kept % len_bytes;
  }
  // From the first to behind the last of `kept` bytes.
  int64_t footprint(int64_t kept) const noexcept { return kept == 0 ? 0 : address(kept - 1) + 1; }
  // Whole chunks and whole words.
  int64_t chunk_bytes() const noexcept {
    constexpr int64_t kWord = 8;
    return contiguous() ? kWord : std::lcm(len_bytes, kWord);
  }
  // By how much the windows of iterations may differ: whole chunks, whole words, about a page.
  int64_t shift() const noexcept {
    constexpr int64_t kPage = 4096;
    const int64_t unit = contiguous() ? kPage : chunk_bytes();
    return (kPage + unit - 1) / unit * unit;
  }
  // `kept` bytes from a window's beginning.
  Result<layout::LoopTree> tree(int64_t kept) const;
};

// One worker's buffer.
class Memory {
 public:
  static constexpr int64_t kShared = 0;
  // Fails with ErrorClass::no_memory. `windows` iterations, 1 or more, lie side by side (reads that
  // are checked after the clock has stopped); kShared: all share the sequence, which is there
  // (writes).
  static Result<Memory> make(const MemoryShape& shape, const Contents& contents,
                             int64_t bytes_per_iteration, int64_t windows);

  const MemoryShape& shape() const noexcept { return shape_; }
  std::byte* window(int64_t iteration) const noexcept;
  // As an application that computes what it writes next.
  void fill(int64_t iteration) const noexcept;
  // Bytes of a window that are not what was to be read; `first_wrong` is a place in the iteration.
  int64_t wrong_bytes(int64_t iteration, int64_t& first_wrong) const;
  // So that bytes that a read leaves alone are not taken for read ones.
  void wipe() const noexcept;

 private:
  Memory(const MemoryShape& shape, const Contents& contents, int64_t bytes, int64_t windows)
      : shape_(shape), contents_(contents), bytes_(bytes), windows_(windows) {}
  bool is_shared() const noexcept { return windows_ == kShared; }
  void store(std::byte* window, int64_t begin, int64_t n) const noexcept;

  MemoryShape shape_;
  Contents contents_;
  int64_t bytes_;
  int64_t windows_;
  AlignedBuffer buffer_;
};

}  // namespace penstock::measure
