// Shared memory that closed files have left on a communicator, for the next file: to give it back,
// to take it again, to have it cleared and to map it takes longer than to fill it
// (docs/decisions/0058-segments-are-kept.md).
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "comm/shared_segment.hpp"

namespace penstock::comm {

// Of one rank; all ranks that share the segments ask for them in the same order.
class KeptSegments {
 public:
  // For each rank of a node, and of what the machine has free. More is given back at once.
  static constexpr size_t kMostBytesPerRank = size_t{8} << 20;
  static constexpr size_t kMostOfFree = 16;  // a sixteenth

  // One that was made, which its user has from now on, and which is idle when nobody has it.
  void add(std::shared_ptr<SharedSegment> made, int ranks_of_node);
  // Whether there ever was one: the same on all ranks.
  bool has_had_any() const noexcept { return ranks_of_node_ > 0; }
  // The number of the smallest idle one that is large enough; -1: there is none.
  int find(const SegmentShape& shape) const noexcept;
  const std::shared_ptr<SharedSegment>& at(int number) const noexcept {
    return segments_[size_t(number)];
  }
  void drop_idle() noexcept;
  // No file uses the communicator: keeps idle ones, within the bounds.
  void rest() noexcept;

 private:
  std::vector<std::shared_ptr<SharedSegment>> segments_;
  int ranks_of_node_ = 0;
};

}  // namespace penstock::comm
