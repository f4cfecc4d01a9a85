// Summaries, their classes, and which ranks touch an extent.
#include "plan/summary.hpp"

#include <algorithm>
#include <utility>

namespace penstock::plan {
namespace {

// Floor and ceiling of a/b for b > 0 and any a.
constexpr Off floor_div(Off a, Off b) noexcept { return a / b - (a % b < 0 ? 1 : 0); }
constexpr Off ceil_div(Off a, Off b) noexcept { return -floor_div(-a, b); }

Summary shifted(Summary s, Off by) noexcept {
  s.lo += by;
  s.hi += by;
  return s;
}

bool equal_up_to_shift(const Summary& a, const Summary& b) noexcept {
  return shifted(a, -a.lo) == shifted(b, -b.lo);
}

bool continues(const RankClass& c, const Summary& next) noexcept {
  if (!equal_up_to_shift(c.summary, next)) return false;
  return c.count == 1 || next.lo - member(c, c.count - 1).lo == c.shift_bytes;
}

void append(std::vector<RankClass>& classes, int rank, const Summary& s) {
  RankClass* last = classes.empty() ? nullptr : &classes.back();
  if (last == nullptr || last->first + last->count != rank || !continues(*last, s)) {
    classes.push_back({rank, 1, s, 0});
    return;
  }
  if (last->count == 1) last->shift_bytes = s.lo - last->summary.lo;
  ++last->count;
}

Extent hull(const RankClass& c) noexcept {
  return hull_of(c.summary.extent(), member(c, c.count - 1).extent());
}

bool members_disjoint(const RankClass& c) noexcept {
  return c.count == 1 || std::abs(c.shift_bytes) >= c.summary.extent().size();
}

// Conservative: classes whose hulls interleave count as overlapping.
bool disjoint(std::span<const RankClass> classes) {
  std::vector<Extent> hulls;
  for (const RankClass& c : classes) {
    if (c.summary.empty()) continue;
    if (!members_disjoint(c)) return false;
    hulls.push_back(hull(c));
  }
  std::ranges::sort(hulls, {}, &Extent::begin);
  for (size_t i = 1; i < hulls.size(); ++i)
    if (hulls[i].begin < hulls[i - 1].end) return false;
  return true;
}

}  // namespace

Summary summarise(const layout::FileView& view, StreamRange own, uint32_t description_bytes) {
  Summary s;
  if (own.empty()) return s;
  const Extent e = view.extent_of(own);
  s.lo = e.begin;
  s.hi = e.end;
  s.bytes = own.size();
  if (s.contiguous()) return s;
  s.phase = own.begin % view.filetype().size();
  s.shape = view.filetype().hash();
  s.description_bytes = description_bytes;
  return s;
}

Result<Part> locate(const Summary& s, const layout::LoopTree& filetype) {
  if (s.contiguous()) return Part{layout::FileView(), {s.lo, s.hi}};
  auto at_zero = layout::FileView::make(0, 1, filetype);
  if (!at_zero) return tl::unexpected(at_zero.error());
  auto view = layout::FileView::make(s.lo - at_zero->offset_of(s.phase), 1, filetype);
  if (!view) return tl::unexpected(view.error());
  return Part{*std::move(view), {s.phase, s.phase + s.bytes}};
}

Summary member(const RankClass& c, int index) noexcept {
  return shifted(c.summary, index * c.shift_bytes);
}

IndexRange touching(const RankClass& c, Extent e) noexcept {
  const Extent first = c.summary.extent();
  if (c.summary.empty() || e.empty()) return {};
  const Off shift = c.shift_bytes;
  if (shift == 0) return first.overlaps(e) ? IndexRange{0, c.count} : IndexRange{};
  // Member i overlaps when first.begin + i*shift < e.end and first.end + i*shift > e.begin.
  const Off step = std::abs(shift);
  Off begin = shift > 0 ? floor_div(e.begin - first.end, step) + 1
                        : floor_div(first.begin - e.end, step) + 1;
  Off end = shift > 0 ? ceil_div(e.end - first.begin, step) : ceil_div(first.end - e.begin, step);
  begin = std::clamp<Off>(begin, 0, c.count);
  end = std::clamp<Off>(end, begin, c.count);
  return {int(begin), int(end)};
}

Crowd Crowd::from(std::span<const Summary> by_rank) {
  std::vector<RankClass> classes;
  for (size_t rank = 0; rank < by_rank.size(); ++rank) append(classes, int(rank), by_rank[rank]);
  return from_classes(std::move(classes), int(by_rank.size()));
}

Crowd Crowd::from_classes(std::vector<RankClass> classes, int ranks) {
  Crowd crowd;
  crowd.classes_ = std::move(classes);
  crowd.ranks_ = ranks;
  for (const RankClass& c : crowd.classes_) {
    crowd.worst_error_ = std::max(crowd.worst_error_, c.summary.error);
    if (c.summary.empty()) continue;
    crowd.bounds_ = hull_of(crowd.bounds_, hull(c));
    crowd.bytes_ += c.count * c.summary.bytes;
    crowd.contiguous_ = crowd.contiguous_ && c.summary.contiguous();
  }
  crowd.disjoint_ = disjoint(crowd.classes_);
  return crowd;
}

Summary Crowd::summary(int rank) const {
  const auto after = std::ranges::upper_bound(classes_, rank, {}, &RankClass::first);
  if (after == classes_.begin()) return {};
  const RankClass& c = *std::prev(after);
  return rank < c.first + c.count ? member(c, rank - c.first) : Summary{};
}

}  // namespace penstock::plan
