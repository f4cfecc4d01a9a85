// Where the ranks of one node tell each other a few numbers, in memory that they share: a rank
// writes its own and reads the others'. A collective of MPI's takes microseconds, this a fraction
// of one (docs/decisions/0074-agreements-in-shared-memory.md).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "comm/shared_segment.hpp"

namespace penstock::comm {

class Board {
 public:
  // Every rank looks at all others' places; of more of them nothing was measured.
  static constexpr int kMostRanks = 64;
  static constexpr size_t kMostBytes = 256;  // that a rank tells at once

  static SegmentShape shape(int ranks) {
    return {size_t(ranks) * sizeof(Place), size_t(ranks) * sizeof(Place), Room::now};
  }
  // The same segment on all ranks, of which nothing was used before.
  Board(std::shared_ptr<SharedSegment> segment, int rank, int ranks)
      : segment_(std::move(segment)), rank_(rank), ranks_(ranks) {}

  // Collective. `hear(rank, told)` for each other rank, in their order; `wait()` between two looks
  // at who has not come, and it may fail. REQUIRES as many bytes of each, kMostBytes at most.
  template <class Wait, class Hear>
  Result<void> meet(std::span<const std::byte> mine, Wait wait, Hear hear) {
    const uint64_t round = ++round_;
    Half& own = half(rank_, round);
    std::ranges::copy(mine, own.bytes);
    own.round.store(round, std::memory_order_release);
    for (int rank = 0; rank < ranks_; ++rank) {
      if (rank == rank_) continue;
      const Half& theirs = half(rank, round);
      while (theirs.round.load(std::memory_order_acquire) < round)
        if (Result<void> r = wait(); !r) return r;
      hear(rank, std::span(theirs.bytes, mine.size()));
    }
    return {};
  }

 private:
  // Nobody writes a half again before all have read it: who comes to the round after the next one
  // has met all in the next one, to which each came after it had read this one's.
  struct alignas(64) Half {
    std::atomic<uint64_t> round;
    std::byte bytes[kMostBytes];
  };
  struct Place {
    Half halves[2];
  };
  Half& half(int rank, uint64_t round) const {
    auto* const places = reinterpret_cast<Place*>(segment_->memory().data());
    return places[rank].halves[round % 2];
  }

  std::shared_ptr<SharedSegment> segment_;
  int rank_, ranks_;
  uint64_t round_ = 0;
};

}  // namespace penstock::comm
