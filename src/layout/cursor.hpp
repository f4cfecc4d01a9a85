// A lazy walk over the bytes that a loop tree names, in stream order, as
// strided runs. Memory: a stack as deep as the tree. A seek costs
// O(depth * log(blocks)). No heap allocation after construction for trees of
// depth <= 16. A cursor keeps the tree's nodes alive. Not thread-safe.
#pragma once

#include <cstdint>

#include "base/extent.hpp"
#include "layout/loop_tree.hpp"

namespace penstock::layout {

// `count` blocks of `block` bytes; block i begins at offset + i * stride.
// In stream order they follow each other without a gap. count >= 1, block >= 1;
// when count == 1 the stride means nothing.
struct Run {
  Off offset = 0;
  int64_t block = 0;
  int64_t stride = 0;
  int64_t count = 0;

  int64_t bytes() const noexcept { return block * count; }
};

class Cursor {
 public:
  // Walks `repetitions` copies of the tree, its extent apart, the first with its origin at `base`.
  // Starts at stream position 0. kForever for a file view.
  static constexpr int64_t kForever = INT64_MAX;
  Cursor(LoopTree tree, Off base, int64_t repetitions);

  // Moves to a stream position. REQUIRES 0 <= position <= repetitions * tree.size().
  void seek(int64_t position);
  int64_t position() const noexcept { return position_; }

  // The longest run that starts here, of at most `max_bytes` bytes, and moves behind it.
  // A block is split when it must be. REQUIRES max_bytes >= 1 and data left.
  Run next(int64_t max_bytes);

 private:
  struct Level;  // cursor.cpp; replace this private section freely
  int64_t position_ = 0;
};

}  // namespace penstock::layout
