// Which bytes of a file page have been filled: a bitmap with one bit per
// granule, because counting bytes is wrong when views overlap. Gives the dirty
// extents in file order, joined. A second bitmap says which blocks of the first hold anything, so
// that a page of which little is filled costs little, however large it is.
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

  // How many granules extents() and the next reset() look at, at most: those of whole blocks.
  int64_t granules_looked_at() const noexcept;

 private:
  template <class Visit>
  void for_each_touched(Visit&& visit) const;
  int64_t granules() const noexcept { return extent_.empty() ? 0 : extent_.size() / granule_; }
  void clear();
  void add_granules(int64_t begin, int64_t end);
  void add_far(int64_t bit, int64_t step, int64_t count);
  void collect(int64_t begin, int64_t end);

  Extent extent_;
  int64_t granule_ = 1;
  // Invariant: bits outside of touched blocks are 0, also those behind the extent's own.
  std::vector<uint64_t> bits_;
  std::vector<uint64_t> touched_;  // a bit for each block of bits_
  std::vector<Extent> extents_;
};

}  // namespace penstock::layout
