#include "exec/gathering.hpp"

#include <algorithm>
#include <numeric>

#include "base/clock.hpp"
#include "exec/abandon.hpp"
#include "exec/peers.hpp"

namespace penstock::exec {
namespace {

std::vector<WriterFault> gather(comm::Comm& comm, std::span<const WriterFault> mine,
                                size_t per_rank) {
  std::vector<WriterFault> padded(per_rank), all(per_rank * size_t(comm.size()));
  std::ranges::copy(mine, padded.begin());
  const Result<void> r =
      comm.allgather(std::as_bytes(std::span(padded)), std::as_writable_bytes(std::span(all)));
  if (!r) abandon(r.error());
  return all;
}

}  // namespace

uint32_t DescriptionBytes::of(const layout::LoopTree& filetype) {
  if (bytes_ != 0 && shape_ == filetype.hash()) return bytes_;
  shape_ = filetype.hash();
  bytes_ = uint32_t(described_bytes(filetype));
  return bytes_;
}

plan::Crowd meet(comm::Comm& comm, const plan::Summary& mine, double& seconds) {
  const Stopwatch watch(seconds);
  std::vector<plan::Summary> all(size_t(comm.size()));
  const Result<void> r =
      comm.allgather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  if (!r) abandon(r.error());
  return plan::Crowd::from(all);
}

int64_t common_granule(int64_t granule, const layout::FileView& view,
                       const plan::Summary& summary) {
  const int64_t ends = std::gcd(granule, std::gcd(summary.lo, summary.hi));
  // One extent has no blocks, whatever the view that it was written through.
  return summary.contiguous() ? ends : std::gcd(ends, view.granule());
}

const std::optional<Error>& worst_of(const std::optional<Error>& a, const std::optional<Error>& b) {
  return a && (!b || b->error_class <= a->error_class) ? a : b;
}

Verdict conclude(comm::Comm& comm, const std::optional<Error>& mine,
                 std::span<const WriterFault> faults) {
  int64_t worst[2] = {mine ? int64_t(mine->error_class) : 0, int64_t(faults.size())};
  if (Result<void> r = comm.all_max(worst); !r) abandon(r.error());
  const auto per_rank = size_t(worst[1]);
  Verdict verdict{ErrorClass(worst[0]), per_rank, {}};
  if (per_rank > 0) verdict.faults = gather(comm, faults, per_rank);
  return verdict;
}

}  // namespace penstock::exec
