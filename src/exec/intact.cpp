#include "exec/intact.hpp"

#include <algorithm>

namespace penstock::exec {
namespace {

// The first stream byte of a slice that its writer's faults left out; slice.src.end when none. A
// cycle can have two: of a write, and of a sync that lost what was written before.
int64_t first_missing(const layout::FileView& view, const plan::Slice& slice,
                      std::span<const WriterFault> faults) {
  int64_t first = slice.src.end;
  for (const WriterFault& f : faults) {
    if (slice.cycle < f.begin || slice.cycle >= f.end) continue;
    if (slice.cycle > f.begin) return slice.src.begin;
    first = std::min(first,
                     std::clamp(view.position_at(f.first_missing), slice.src.begin, slice.src.end));
  }
  return first;
}

}  // namespace

void join(std::vector<WriterFault>& faults, const WriterFault& fault, int told, bool is_whole) {
  const bool joins = is_whole && !faults.empty() && faults.back().end == told + 1;
  if (!joins && faults.size() < kMostFaults) return faults.push_back(fault);
  WriterFault& last = faults.back();
  if (fault.begin == last.begin)
    last.first_missing = std::min(last.first_missing, fault.first_missing);
  if (fault.begin < last.begin) last = {fault.begin, last.end, fault.first_missing};
  last.end = std::max(last.end, fault.end);
}

int64_t intact_prefix(const plan::Plan& plan, const layout::FileView& view, StreamRange own,
                      plan::Slices& slices, std::span<const WriterFault> by_rank, size_t per_rank) {
  int64_t end = own.end;
  while (const auto slice = slices.next()) {
    const auto writer = size_t(plan.writer_rank(slice->writer));
    const int64_t first = first_missing(view, *slice, by_rank.subspan(writer * per_rank, per_rank));
    if (first < slice->src.end) end = std::min(end, first);
  }
  return end - own.begin;
}

}  // namespace penstock::exec
