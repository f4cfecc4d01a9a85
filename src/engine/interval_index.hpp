// Which of many extents meet a given one, in O(log n) for each that does; fixed once made.
#pragma once

#include <algorithm>
#include <bit>
#include <numeric>
#include <vector>

#include "base/extent.hpp"

namespace penstock::engine {

class IntervalIndex {
 public:
  explicit IntervalIndex(std::vector<Extent> extents) : extents_(std::move(extents)) {
    order_.resize(extents_.size());
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::ranges::sort(order_, {}, [&](size_t i) { return extents_[i].begin; });
    leaves_ = std::bit_ceil(std::max<size_t>(1, extents_.size()));
    last_end_.resize(2 * leaves_);
    for (size_t i = 0; i < order_.size(); ++i) last_end_[leaves_ + i] = extents_[order_[i]].end;
    for (size_t i = leaves_ - 1; i > 0; --i)
      last_end_[i] = std::max(last_end_[2 * i], last_end_[2 * i + 1]);
  }

  // Calls use(i) for extents that overlap `e`, by their place in the list, those that begin last
  // first, until one gives true; whether one did.
  template <class Use>
  bool any(Extent e, Use&& use) const {
    return any_below(1, 0, leaves_, e, use);
  }

 private:
  // A binary tree over the extents in the order of their begins; node k has 2k and 2k + 1.
  template <class Use>
  bool any_below(size_t node, size_t first, size_t width, Extent e, Use&& use) const {
    if (first >= order_.size() || extents_[order_[first]].begin >= e.end) return false;
    if (last_end_[node] <= e.begin) return false;
    if (width == 1) return extents_[order_[first]].overlaps(e) && use(order_[first]);
    const size_t half = width / 2;
    return any_below(2 * node + 1, first + half, half, e, use) ||
           any_below(2 * node, first, half, e, use);
  }

  std::vector<Extent> extents_;
  std::vector<size_t> order_;
  size_t leaves_;
  std::vector<Off> last_end_;
};

}  // namespace penstock::engine
