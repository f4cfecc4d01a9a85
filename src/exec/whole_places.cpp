#include "exec/whole_places.hpp"

#include <algorithm>
#include <climits>

namespace penstock::exec {
namespace {

// A writer's pages lie behind each other, so that a handful of places hold them all; what does not
// fit is walked over again.
constexpr int64_t kMostPlaces = 1024;

// So far no file reaches, and sums of a few of them are numbers still.
constexpr Off kFar = INT64_MAX / 8;

bool is_near(const layout::FileView& view) {
  const layout::LoopTree& tile = view.filetype();
  return view.displacement() < kFar && tile.extent() < kFar && tile.true_ub() < kFar &&
         tile.true_lb() > -kFar;
}

Off remainder(Off a, Off unit) noexcept { return a % unit < 0 ? a % unit + unit : a % unit; }
Off quotient(Off a, Off unit) noexcept { return (a - remainder(a, unit)) / unit; }

// The first tile of the view, were it to begin at the view's displacement.
Extent first_tile(const layout::FileView& view) {
  const layout::LoopTree& tile = view.filetype();
  return {view.displacement() + tile.true_lb(), view.displacement() + tile.true_ub()};
}

// A point of a circle that lies in none of the arcs, but for their beginnings; nullopt: there is
// none. Arcs begin on the circle and are no longer than it.
std::optional<Off> free_point(std::vector<Extent> arcs, Off circle) {
  std::ranges::sort(arcs, {}, &Extent::begin);
  Off taken = 0;  // up to here
  for (const Extent& a : arcs) taken = std::max(taken, a.end - circle);
  for (const Extent& a : arcs) {
    if (a.begin >= taken) return a.begin;
    taken = std::max(taken, a.end);
  }
  return std::nullopt;
}

}  // namespace

template <class Visit>
void WholePlaces::for_each_member(const Parties& all, Visit&& visit) {
  if (!all.own.empty()) visit(Member{all.rank, all.view, all.own});
  for (const Peer& p : all.peers)
    if (!p.part.own.empty()) visit(Member{p.rank, p.part.view, p.part.own});
}

void WholePlaces::begin(const Parties& all, Off page_bytes) {
  repeats_ = repeat_alike(all);
  if (!repeats_) return;
  if (const Hash pattern = pattern_of(all); pattern != pattern_) {
    pattern_ = pattern;
    meet(all, page_bytes);
  }
  repeats_ = turn_.has_value();
  if (!repeats_) return;
  std::optional<Off> first;
  for_each_member(all, [&](const Member& m) {
    if (!first) first = first_tile(m.view).begin;
  });
  anchor_ = remainder(*first + *turn_, extent_);
  in_full_ = {0, INT64_MAX};
  for_each_member(all, [&](const Member& m) {
    const Extent full = range_in_full(m);
    in_full_ = {std::max(in_full_.begin, full.begin), std::min(in_full_.end, full.end)};
  });
}

// All members' views, of which there is one at least, repeat after the same extent.
bool WholePlaces::repeat_alike(const Parties& all) {
  Off extent = 0;
  bool alike = true;
  for_each_member(all, [&](const Member& m) {
    if (extent == 0) extent = m.view.filetype().extent();
    alike =
        alike && m.view.is_monotone() && is_near(m.view) && m.view.filetype().extent() == extent;
  });
  return alike && extent > 0;
}

// The same wherever in the file the ranks' ranges begin.
Hash WholePlaces::pattern_of(const Parties& all) {
  std::optional<Off> first;
  Hash hash = 0;
  for_each_member(all, [&](const Member& m) {
    const Off extent = m.view.filetype().extent(), tile = first_tile(m.view).begin;
    if (!first) first = tile;
    hash = mix(mix(hash, uint64_t(m.rank)), m.view.hash());
    hash = mix(mix(hash, uint64_t(extent)), uint64_t(remainder(tile - *first, extent)));
  });
  return hash;
}

// A pattern that was not there before. Its turns begin where no rank's tile has begun and not
// ended, so that a tile lies in one turn, whichever rank's it is.
void WholePlaces::meet(const Parties& all, Off page_bytes) {
  std::optional<Off> first;
  std::vector<Extent> tiles;
  for_each_member(all, [&](const Member& m) {
    const Extent tile = first_tile(m.view);
    if (!first) first = tile.begin;
    extent_ = m.view.filetype().extent();
    const Off begin = remainder(tile.begin - *first, extent_);
    tiles.push_back({begin, begin + tile.size()});
  });
  turn_ = free_point(std::move(tiles), extent_);
  known_.clear();
  known_.reserve(size_t(std::min(kMostPlaces, extent_ / std::max<Off>(page_bytes, 1) + 2)));
}

// What lies in it is in the rank's range wherever its view names it.
Extent WholePlaces::range_in_full(const Member& m) const {
  const int64_t tile = m.view.filetype().size();
  const int64_t turn = quotient(first_tile(m.view).begin - anchor_, extent_);  // of the first tile
  const auto cut = [&](int64_t position) -> Off {
    if (position % tile != 0) return m.view.offset_of(position);
    Off at = 0;
    const bool far = __builtin_mul_overflow(turn + position / tile, extent_, &at) ||
                     __builtin_add_overflow(at, anchor_, &at);
    return far ? INT64_MAX : at;
  };
  return {cut(m.own.begin), cut(m.own.end)};
}

// Calls visit(place) with where it lies in a turn, in two parts perhaps, until one says no.
template <class Visit>
bool WholePlaces::for_each_place(Extent where, Visit&& visit) const {
  if (where.size() >= extent_) return visit(Extent{0, extent_});
  const Off begin = remainder(where.begin - anchor_, extent_), end = begin + where.size();
  if (end <= extent_) return visit(Extent{begin, end});
  return visit(Extent{begin, extent_}) && visit(Extent{0, end - extent_});
}

bool WholePlaces::is_known(Extent place) const {
  const auto behind = std::ranges::upper_bound(known_, place.begin, {}, &Extent::begin);
  return behind != known_.begin() && place.end <= std::prev(behind)->end;
}

bool WholePlaces::hold(Extent where) const {
  return would_keep(where) && for_each_place(where, [&](Extent p) { return is_known(p); });
}

void WholePlaces::learn(Extent where) {
  if (!would_keep(where)) return;
  for_each_place(where, [&](Extent p) {
    keep(p);
    return true;
  });
}

// Together with what it overlaps or touches. Allocates nothing: it is called between pages.
void WholePlaces::keep(Extent place) {
  auto first = std::ranges::lower_bound(known_, place.begin, {}, &Extent::end);
  const auto last = std::ranges::upper_bound(known_, place.end, {}, &Extent::begin);
  if (first == last) {
    if (known_.size() < known_.capacity()) known_.insert(first, place);
    return;
  }
  first->begin = std::min(first->begin, place.begin);
  first->end = std::max(std::prev(last)->end, place.end);
  known_.erase(std::next(first), last);
}

}  // namespace penstock::exec
