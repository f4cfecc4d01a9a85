// Statistics: the engine's counters of one rank, or of all by reduction.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "capi/agree.hpp"
#include "capi/handles.hpp"
#include "capi/status.hpp"
#include "exec/abandon.hpp"

namespace penstock::capi {
namespace {

// As the engine counts: whole numbers, times in nanoseconds. Sums over ranks, and maxima.
struct Numbers {
  std::array<int64_t, 9> counts{};
  std::array<int64_t, 6> times_ns{};
};

// Up to `sync_s`: what the first version of the struct had.
constexpr size_t kLeastStatsBytes = offsetof(penstock_stats, sync_s) + sizeof(double);
constexpr size_t kMostStatsBytes = 4096;  // more is no struct of any version, but garbage

Numbers numbers_of(const engine::File& file) {
  const engine::Counters c = file.snapshot().sum;
  const auto calls = [&](engine::CallKind k) { return c.calls[size_t(k)]; };
  return {
      {c.engine_bytes, calls(engine::CallKind::write_at_all), calls(engine::CallKind::write_at),
       calls(engine::CallKind::sync), c.errors, c.file_writes, c.cycles, c.messages,
       c.message_bytes},
      {c.call_ns, c.plan_ns, c.pack_ns, c.exchange_ns, c.write_ns, c.sync_ns + c.policy_sync_ns}};
}

penstock_stats stats_of(const Numbers& n) {
  const auto seconds = [&](size_t i) { return 1e-9 * double(n.times_ns[i]); };
  const auto& c = n.counts;
  return {sizeof(penstock_stats),
          c[0],
          c[1],
          c[2],
          c[3],
          c[4],
          c[5],
          c[6],
          c[7],
          c[8],
          seconds(0),
          seconds(1),
          seconds(2),
          seconds(3),
          seconds(4),
          seconds(5)};
}

// A program that knows more members than this library gets zeros in them; `size` stays its own.
Result<void> hand_out(const penstock_stats& all, penstock_stats* to) {
  if (to == nullptr)
    return tl::unexpected(argument_error("penstock_statistics", "stats must not be NULL"));
  const size_t size = to->size;
  if (size < kLeastStatsBytes || size > kMostStatsBytes)
    return tl::unexpected(argument_error(
        "penstock_statistics", "stats->size must be sizeof(penstock_stats), got " +
                                   std::to_string(size) + "; begin with PENSTOCK_STATS_INIT"));
  std::memset(static_cast<void*>(to), 0, size);
  std::memcpy(static_cast<void*>(to), &all, std::min(size, sizeof all));
  to->size = size;
  return {};
}

int of_this_rank(penstock_file* file, penstock_stats* stats) {
  if (file == nullptr)
    return failed(argument_error("penstock_statistics", "file must not be NULL"));
  return failed(hand_out(stats_of(numbers_of(*file->file)), stats));
}

// The ranks meet before anything of this rank is judged.
int of_all(penstock_file* file, penstock_stats* stats) {
  if (file == nullptr)
    return failed(argument_error("penstock_statistics_all", "file must not be NULL"));
  Numbers n;
  Result<void> mine = prepared("penstock_statistics_all", [&]() -> Result<void> {
    n = numbers_of(*file->file);
    return {};
  });
  comm::Comm& comm = *file->rank.comm;
  exec::or_abandon(comm.all_sum(n.counts));
  exec::or_abandon(comm.all_max(n.times_ns));
  if (mine) mine = hand_out(stats_of(n), stats);
  return failed(agree_in_own_words(comm, mine));
}

}  // namespace
}  // namespace penstock::capi

extern "C" {

int penstock_statistics(penstock_file* file, penstock_stats* stats) {
  using namespace penstock::capi;
  return guarded("penstock_statistics", [&] { return of_this_rank(file, stats); });
}

int penstock_statistics_all(penstock_file* file, penstock_stats* stats) {
  using namespace penstock::capi;
  return guarded("penstock_statistics_all", [&] {
    return penstock::exec::or_abandon("statistics", [&] { return of_all(file, stats); });
  });
}
}
