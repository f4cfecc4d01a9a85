// A lazy walk over the bytes that a loop tree names, in stream order, as
// strided runs. Memory: a stack as deep as the tree. A seek costs
// O(depth * log(blocks)). No heap allocation after construction for trees of
// depth <= 16. A cursor keeps the tree's nodes alive. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

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
  // Behind the last block, of a file view's run: kLastOff where some of it lies beyond all offsets.
  Off end() const noexcept {
    const Off last = count > 1 ? capped_sum(offset, capped_product(count - 1, stride)) : offset;
    return capped_sum(last, block);
  }
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
  // A block is split when it must be. REQUIRES max_bytes >= 1, data
  // left, and position() + max_bytes <= INT64_MAX.
  Run next(int64_t max_bytes);

  // Calls use(offset, length) for whole blocks that start here, of at most `max_bytes` bytes
  // together, and moves behind them, as far as one irregular list has them; gives their bytes, 0
  // where the next block is of no such list, or does not fit. In layout/listed_blocks.hpp, for
  // src/layout.
  template <class Use>
  int64_t for_each_listed(int64_t max_bytes, Use&& use);

 private:
  // One level of the walk: entry `index` of `count`; entry 0 of a strided level lies at `origin`,
  // entry i of any other at origin + node->displacements[i].
  struct Level {
    const Node* node = nullptr;  // nullptr: the repetitions of the whole tree
    Off origin = 0;
    Off stride = 0;
    int64_t index = 0;
    int64_t count = 0;
    bool strided = true;
    bool plain = true;  // every entry is adjacent bytes: there is nothing to descend into
  };
  static constexpr int kInlineLevels = 17;  // the repetitions and a tree of depth 16

  Level* levels() noexcept { return deep_.empty() ? shallow_.data() : deep_.data(); }
  Level& bottom() noexcept { return levels()[depth_ - 1]; }
  void set_repetitions(Off base, int64_t repetitions);
  const Node* entry(const Level& level) const noexcept;
  int64_t length(const Level& level) const noexcept;
  static Off place(const Level& level) noexcept;
  void start_block() noexcept;
  void push(const Node& node, Off origin) noexcept;
  void descend() noexcept;
  void step(int64_t entries) noexcept;
  void pass(int64_t entries, int64_t bytes) noexcept;
  void climb() noexcept;
  Run part_of_block(int64_t max_bytes) noexcept;
  void extend(Run& run, int64_t max_bytes) noexcept;

  LoopTree tree_;
  const Node* top_entry_ = nullptr;  // of the repetitions; nullptr: plain bytes
  int64_t top_bytes_ = 0;            // data in one entry of the repetitions
  int depth_ = 1;
  int64_t block_ = 0;   // length of the block at the bottom
  int64_t within_ = 0;  // of it, behind us
  int64_t position_ = 0;
  std::array<Level, kInlineLevels> shallow_;
  std::vector<Level> deep_;  // used instead when the tree is deeper
};

}  // namespace penstock::layout
