// The slices of one rank, in the order in which it sends them; and cuts, where all is known.
#include "plan/plan.hpp"

#include <algorithm>

namespace penstock::plan {

std::vector<Off> Plan::find_cuts(int, std::span<const Part>) const { return {}; }
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
      cycles_(plan.cycles_of(summary, rank)),
      cycle_(cycles_.begin),
      writer_(0) {
  begin_cycle();
}

void Slices::begin_cycle() {
  if (cycle_ >= cycles_.end) return;
  writers_ = plan_.writers_of(summary_, rank_, cycle_);
  writer_ = writers_.begin;
}

std::optional<Slice> Slices::next() {
  while (cycle_ < cycles_.end) {
    while (writer_ < writers_.end) {
      const int writer = writer_++;
      const StreamRange src = plan_.part(view_, own_, rank_, writer, cycle_);
      if (!src.empty()) return Slice{writer, cycle_, src};
    }
    ++cycle_;
    begin_cycle();
  }
  return std::nullopt;
}

}  // namespace penstock::plan
