// The slices of one rank, in the order in which it sends them; and cuts, where all is known.
#include "plan/plan.hpp"

#include <algorithm>
#include <climits>

namespace penstock::plan {

namespace {

// The first cycle of a writer in [first, last) that ends behind `offset`; last when there is none.
int first_behind(const Plan& plan, int writer, int first, int last, Off offset) {
  while (first < last) {
    const int middle = first + (last - first) / 2;
    if (plan.extent(writer, middle).end > offset)
      last = middle;
    else
      first = middle + 1;
  }
  return first;
}

}  // namespace

int Plan::next_cycle(const layout::FileView& view, StreamRange own, int rank, int writer,
                     int from) const {
  const int end = cycles(writer);
  // Invariant: the rank has nothing for the writer before cycle `from`.
  while (from < end && part(view, own, rank, writer, from).empty()) {
    const int64_t position = std::max(own.begin, view.position_at(extent(writer, from).begin));
    if (position >= own.end) return end;
    from = first_behind(*this, writer, from + 1, end, view.offset_of(position));
  }
  return from;
}

int next_cycle_of(const Plan& plan, const layout::FileView& view, StreamRange own,
                  const Summary& summary, int rank, int from) {
  int first = INT_MAX;
  const IntRange writers = plan.reached(summary, rank);
  for (int writer = writers.begin; writer < writers.end && first > from; ++writer) {
    const int cycle = plan.next_cycle(view, own, rank, writer, from);
    if (cycle < plan.cycles(writer)) first = std::min(first, cycle);
  }
  return first;
}

std::vector<Off> Plan::find_cuts(int, std::span<const Part>) const { return {}; }
// NOLINTNEXTLINE(performance-unnecessary-value-param): who overrides it keeps them
std::unique_ptr<const Plan> Plan::with_cuts(int, std::vector<Off>) const { return nullptr; }

std::shared_ptr<const Plan> with_all_cuts(std::shared_ptr<const Plan> plan,
                                          std::span<const Part> by_rank) {
  for (int w = 0; w < plan->writers(); ++w) {
    if (plan->cuts(w) == 0) continue;
    const IntRange ranks = plan->senders(w);
    std::vector<Part> senders;
    for (int r = ranks.begin; r < std::min(ranks.end, int(by_rank.size())); ++r)
      if (!by_rank[size_t(r)].own.empty()) senders.push_back(by_rank[size_t(r)]);
    plan = plan->with_cuts(w, plan->find_cuts(w, senders));
  }
  return plan;
}

Slices::Slices(const Plan& plan, const layout::FileView& view, StreamRange own,
               const Summary& summary, int rank)
    : plan_(plan),
      view_(view),
      own_(own),
      summary_(summary),
      rank_(rank),
      cycles_(plan.cycles_of(summary, rank)) {
  begin_cycle(cycles_.begin);
}

void Slices::begin_cycle(int cycle) {
  cycle_ = cycle;
  found_ = false;
  if (cycle_ >= cycles_.end) return;
  writers_ = plan_.writers_of(summary_, rank_, cycle_);
  writer_ = writers_.begin;
}

// A cycle with nothing is taken for the first of many.
std::optional<Slice> Slices::next() {
  while (cycle_ < cycles_.end) {
    while (writer_ < writers_.end) {
      const int writer = writer_++;
      const StreamRange src = plan_.part(view_, own_, rank_, writer, cycle_);
      found_ = found_ || !src.empty();
      if (!src.empty()) return Slice{writer, cycle_, src};
    }
    begin_cycle(found_ ? cycle_ + 1
                       : next_cycle_of(plan_, view_, own_, summary_, rank_, cycle_ + 1));
  }
  return std::nullopt;
}

}  // namespace penstock::plan
