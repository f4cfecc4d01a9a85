// Shared memory that closed files have left on a communicator, for the next file: to give it back,
// to take it again, to have it cleared and to map it takes longer than to fill it
// (docs/decisions/0058-segments-are-kept.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/shared_segment.hpp"

namespace penstock::comm {

// Of one rank; all ranks that share the segments ask for them in the same order. What each gives
// back it decides alone: who has another handle on a file still uses what others may keep, and has
// seen other memory free. So a segment is known by its number, never by its place among the others.
class KeptSegments {
 public:
  // For each rank of a node, and of what the machine has free. More is given back at once.
  static constexpr size_t kMostBytesPerRank = size_t{16} << 20;
  static constexpr size_t kMostOfFree = 16;  // a sixteenth

  // One that all ranks have made, which its user has from now on, and which is idle when nobody has
  // it. Its number is how many were made before: the same on all ranks, and never another's.
  void add(std::shared_ptr<SharedSegment> made, int ranks_of_node);
  // Whether there ever was one: the same on all ranks.
  bool has_had_any() const noexcept { return made_ > 0; }
  // The number of the smallest idle one that is large enough; -1: there is none.
  int64_t find(const SegmentShape& shape) const noexcept;
  // REQUIRES that it was found.
  const std::shared_ptr<SharedSegment>& at(int64_t number) const noexcept;
  void drop_idle() noexcept;
  // No file uses the communicator: keeps idle ones, within the bounds.
  void rest() noexcept;

 private:
  struct Numbered {
    int64_t number;
    std::shared_ptr<SharedSegment> segment;
    bool is_idle() const noexcept { return segment.use_count() == 1; }
  };
  std::vector<Numbered> segments_;
  int64_t made_ = 0;
  int ranks_of_node_ = 0;
};

}  // namespace penstock::comm
