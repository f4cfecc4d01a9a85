// Which bytes of a file page have been filled: a bitmap with one bit per
// granule, because counting bytes is wrong when views overlap. Gives the dirty
// extents in file order, joined.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "base/extent.hpp"
#include "layout/cursor.hpp"

namespace penstock::layout {

class Coverage {
 public:
  // Starts afresh over `extent`, nothing covered. REQUIRES granule >= 1 divides extent.begin,
  // extent.end and every offset and length that will be added. Memory is kept between calls.
  Result<void> reset(Extent extent, int64_t granule);

  void add(Extent e);      // clipped to the extent
  void add(const Run& r);  // file offsets
  // What `cursor` names in the next n stream bytes; moves it.
  void add(Cursor& cursor, int64_t n);

  // Covered extents in ascending order, disjoint, not touching. The span lives until the next call.
  std::span<const Extent> extents();
  bool complete() const noexcept;  // every byte of the extent is covered

 private:
  Extent extent_;
  int64_t granule_ = 1;
  std::vector<uint64_t> bits_;
  std::vector<Extent> extents_;
};

}  // namespace penstock::layout
