// File extents whose bytes lie one behind the other in memory: what a writer
// collects when it is scattered over the file. Made from the streams that will bring it,
// so that every byte has one place, however views overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/extent.hpp"
#include "layout/cursor.hpp"

namespace penstock::layout {

class ExtentList {
 public:
  // The next `bytes` bytes of a cursor over a monotone view.
  struct Stream {
    Cursor* cursor = nullptr;
    int64_t bytes = 0;
  };

  // The union of what the streams name; moves their cursors behind it. O(blocks * log streams).
  // Memory is kept between calls.
  void assign(std::span<const Stream> streams);

  // Ascending, disjoint, not touching.
  std::span<const Extent> extents() const noexcept { return extents_; }
  int64_t bytes() const noexcept { return bytes_; }

  // Where a file byte lies in the memory of the list. `near` is any number of a former call, or 0:
  // offsets that ascend are found at once. REQUIRES that an extent of the list holds it.
  int64_t place(Off offset, size_t& near) const;

 private:
  // A stream at its next block.
  struct Head {
    Off begin;
    size_t stream;
  };
  struct Walk {
    Cursor* cursor;
    int64_t left;  // behind the run
    Run run;
    int64_t next;  // block of the run
    bool turn();
    Off begin() const noexcept { return run.offset + next * run.stride; }
  };

  void take_blocks(Head top);
  void add(Extent e);

  std::vector<Extent> extents_;
  std::vector<int64_t> places_;  // of the extents
  int64_t bytes_ = 0;
  std::vector<Walk> walks_;
  std::vector<Head> heads_;  // a heap, the first in the file on top
};

}  // namespace penstock::layout
