// What algorithms with few writers among many ranks share: how many write, which ranks they are,
// and how much each collects at a time. Arithmetic only, so that nothing takes time that grows with
// the number of ranks.
#pragma once

#include <algorithm>
#include <optional>

#include "plan/algorithm.hpp"

namespace penstock::plan {

// The file's lock in the kernel lets one of a node's writers into a write at a time: the second
// makes its page ready meanwhile, and of more than a few each costs buffers and waits.
inline constexpr int kMostWritersPerNode = 4;

// One per core of every node, since more would take turns on the cores; but a few (decision 63).
inline int default_writers(const Team& team) {
  const int nodes = std::max(1, team.nodes);
  const int most = std::min(team.cores_per_node, kMostWritersPerNode);
  const int per_node = std::max(1, std::min(team.ranks / nodes, most));
  return int(std::min<int64_t>(team.ranks, int64_t{per_node} * nodes));
}

// Writers 0 .. writers-1, spread evenly over the ranks in the order of their nodes, and so over the
// nodes. REQUIRES 1 <= writers <= team.ranks.
class WriterRanks {
 public:
  WriterRanks(const Team& team, int writers) noexcept
      : dealing_(team.dealing()), ranks_(team.ranks), writers_(writers) {}

  int writers() const noexcept { return writers_; }
  int rank_of(int writer) const noexcept { return dealing_.rank_at(position_of(writer)); }
  std::optional<int> writer_at(int rank) const noexcept {
    const int position = dealing_.position_of(rank);
    const int writer = int(divide_up(int64_t{position} * writers_, ranks_));
    if (writer < writers_ && position_of(writer) == position) return writer;
    return std::nullopt;
  }

 private:
  int position_of(int writer) const noexcept { return int(int64_t{writer} * ranks_ / writers_); }

  Dealing dealing_;
  int ranks_, writers_;
};

// Cycles are counted by an int. Only extents that are nearly all holes come near this many.
inline constexpr int64_t kMostCycles = int64_t{1} << 29;

// How much a writer collects and writes at a time, where `share_bytes` of the file are its own: the
// cycle asked for (0: the default) in whole units, or in whole blocks where a unit is larger than
// the cycle, since the buffer may not follow the stripes of a file system; and never so little that
// the cycles could not be counted.
inline int64_t page_of(int64_t cycle_bytes, const layout::Geometry& geometry, int64_t share_bytes) {
  const int64_t cycle = cycle_bytes > 0 ? cycle_bytes : kDefaultCycleBytes;
  const int64_t block = geometry.block();
  const int64_t step = cycle < geometry.unit() ? std::min(block, geometry.unit()) : geometry.unit();
  return align_up(std::max(cycle, divide_up(share_bytes, kMostCycles)), step);
}

}  // namespace penstock::plan
