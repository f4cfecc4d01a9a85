// The slices of one rank, in the order in which it sends them.
#include "plan/plan.hpp"

namespace penstock::plan {

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
