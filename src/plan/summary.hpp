// What one rank says about its part of one collective call, and how the
// summaries of all ranks are held: as classes of equivalent ranks, so that
// memory follows the number of patterns and not the number of ranks, and a
// simulator can walk 100,000 ranks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "base/extent.hpp"
#include "base/hash.hpp"
#include "layout/file_view.hpp"

namespace penstock::plan {

// 48 bytes; travels in the entry agreement of a collective call. With the loop tree of the rank's
// filetype (known by its hash) it says all: lo and phase place the tree, bytes ends the range.
struct Summary {
  Off lo = 0;         // first file byte touched; lo == hi: this rank writes nothing
  Off hi = 0;         // one past the last
  int64_t bytes = 0;  // of data; == hi - lo exactly when the rank's part is one contiguous extent
  int64_t phase = 0;  // stream position of the first byte within one filetype; 0 when contiguous
  Hash shape = 0;     // of the filetype; 0 when contiguous
  uint32_t description_bytes = 0;  // of the serialised filetype, or a long list's outline; or 0
  uint32_t error = 0;              // ErrorClass: the rank cannot take part, and writes nothing

  Extent extent() const noexcept { return {lo, hi}; }
  bool empty() const noexcept { return bytes == 0; }
  bool contiguous() const noexcept { return bytes == hi - lo; }
  friend bool operator==(const Summary&, const Summary&) = default;
};
static_assert(sizeof(Summary) == 48);

// The summary of bytes `own` of a stream through `view`. `description_bytes` is the size of what a
// writer is told of the filetype, which the caller keeps per view.
Summary summarise(const layout::FileView& view, StreamRange own, uint32_t description_bytes);
// The other way round: the view that a summary describes, and the rank's range in it. `filetype` is
// the tree with hash `s.shape`, ignored when the summary is contiguous.
struct Part {
  layout::FileView view;
  StreamRange own;
};
Result<Part> locate(const Summary& s, const layout::LoopTree& filetype);

// Ranks first, first+1, ..., first+count-1 whose summaries are equal up to a constant shift.
struct RankClass {
  int first = 0;
  int count = 0;
  Summary summary;      // of rank `first`
  Off shift_bytes = 0;  // rank first+i: lo and hi are larger by i * shift_bytes
};

// All ranks of a team. Immutable.
class Crowd {
 public:
  Crowd() = default;
  static Crowd from(std::span<const Summary> by_rank);
  // Ascending, disjoint classes of a team of `ranks`; ranks that no class names write nothing.
  static Crowd from_classes(std::vector<RankClass> classes, int ranks);

  int ranks() const noexcept { return ranks_; }
  std::span<const RankClass> classes() const noexcept { return classes_; }
  Summary summary(int rank) const;                    // O(log classes)
  Extent bounds() const noexcept { return bounds_; }  // of all ranks; empty when nobody writes
  int64_t bytes() const noexcept { return bytes_; }
  uint32_t worst_error() const noexcept { return worst_error_; }
  // No two ranks' extents overlap, in rank order or not: nothing to shuffle when contiguous.
  bool extents_disjoint() const noexcept { return disjoint_; }
  bool all_contiguous() const noexcept { return contiguous_; }

  // Calls visit(rank, summary) for each rank whose extent overlaps `e`, ascending.
  // O(classes + answers).
  template <class Visit>
  void for_each_touching(Extent e, Visit&& visit) const;
  // The same of ranks [first, last) only.
  template <class Visit>
  void for_each_touching(Extent e, int first, int last, Visit&& visit) const;

 private:
  std::vector<RankClass> classes_;
  int ranks_ = 0;
  Extent bounds_;
  int64_t bytes_ = 0;
  uint32_t worst_error_ = 0;
  bool disjoint_ = true;
  bool contiguous_ = true;
};

// The members of `c`, as indices [begin, end) within the class, whose extents overlap `e`.
struct IndexRange {
  int begin = 0, end = 0;
};
IndexRange touching(const RankClass& c, Extent e) noexcept;
Summary member(const RankClass& c, int index) noexcept;

template <class Visit>
void Crowd::for_each_touching(Extent e, Visit&& visit) const {
  for_each_touching(e, 0, ranks_, visit);
}

template <class Visit>
void Crowd::for_each_touching(Extent e, int first, int last, Visit&& visit) const {
  auto c = std::ranges::upper_bound(classes_, first, {}, &RankClass::first);
  if (c != classes_.begin()) --c;
  for (; c != classes_.end() && c->first < last; ++c) {
    const IndexRange r = touching(*c, e);
    const int begin = std::max(r.begin, first - c->first), end = std::min(r.end, last - c->first);
    for (int i = begin; i < end; ++i) visit(c->first + i, member(*c, i));
  }
}

}  // namespace penstock::plan
