// The merge: a heap of the streams' next blocks. A stream stays on top while its blocks come before
// all others', so that streams that lie behind each other cost no heap at all.
#include "layout/extent_list.hpp"

#include <algorithm>
#include <cassert>

namespace penstock::layout {
namespace {

constexpr auto kLater = [](const auto& a, const auto& b) { return a.begin > b.begin; };

}  // namespace

// To the next block; false when there is none.
bool ExtentList::Walk::turn() {
  if (++next < run.count) return true;
  if (left == 0) return false;
  run = cursor->next(left);
  left -= run.bytes();
  next = 0;
  return true;
}

void ExtentList::assign(std::span<const Stream> streams) {
  extents_.clear();
  places_.clear();
  walks_.clear();
  heads_.clear();
  bytes_ = 0;
  for (const Stream& s : streams) {
    walks_.push_back({s.cursor, s.bytes, {}, 0});
    if (walks_.back().turn()) heads_.push_back({walks_.back().begin(), walks_.size() - 1});
  }
  std::ranges::make_heap(heads_, kLater);
  while (!heads_.empty()) {
    std::ranges::pop_heap(heads_, kLater);
    const Head top = heads_.back();
    heads_.pop_back();
    take_blocks(top);
  }
  places_.reserve(extents_.size());
  for (const Extent e : extents_) {
    places_.push_back(bytes_);
    bytes_ += e.size();
  }
}

void ExtentList::take_blocks(Head top) {
  Walk& walk = walks_[top.stream];
  do {
    add(Extent::of(walk.begin(), walk.run.block));
    if (!walk.turn()) return;
  } while (heads_.empty() || walk.begin() <= heads_.front().begin);
  heads_.push_back({walk.begin(), top.stream});
  std::ranges::push_heap(heads_, kLater);
}

void ExtentList::add(Extent e) {
  if (!extents_.empty() && e.begin <= extents_.back().end)
    extents_.back().end = std::max(extents_.back().end, e.end);
  else
    extents_.push_back(e);
}

int64_t ExtentList::place(Off offset, size_t& near) const {
  if (near < extents_.size() && offset >= extents_[near].end) ++near;
  if (near >= extents_.size() || !extents_[near].contains(offset))
    near =
        size_t(std::ranges::upper_bound(extents_, offset, {}, &Extent::begin) - extents_.begin()) -
        1;
  assert(extents_[near].contains(offset));
  return places_[near] + (offset - extents_[near].begin);
}

}  // namespace penstock::layout
