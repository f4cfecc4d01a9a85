// Turns of ranks that write for themselves, so that only so many of them write at a time
// (chaarawi-2009, 3.3: the scheduled variant of `individual`).
//
// A token travels in rank order, round after round: turn t = round * ranks + rank begins when turn
// t - at_once has ended, which its rank says by an empty message. So at most at_once turns are open
// at a time, on all nodes together; nobody asks, a rank does the same few steps in a round however
// many ranks there are, and each turn waits for earlier ones only: nobody can wait for ever. A rank
// with nothing to write, or after an error, passes the token on at once.
#pragma once

#include <cstdint>

#include "comm/comm.hpp"

namespace penstock::exec {

class Turns {
 public:
  // `rounds` is the same on all ranks. REQUIRES 0 < at_once < ranks.
  Turns(const comm::Comm& comm, comm::Transfers& transfers, int at_once, int64_t rounds)
      : transfers_(transfers),
        rank_(comm.rank()),
        ranks_(comm.size()),
        at_once_(at_once),
        rounds_(rounds) {}

  int64_t rounds() const noexcept { return rounds_; }
  // Waits for this rank's turn of the round, and ends it. Every rank calls both for every round, in
  // order. A message that failed ends the job.
  void await(int64_t round);
  void pass(int64_t round);
  int64_t messages() const noexcept { return messages_; }  // sent so far

 private:
  int64_t turn(int64_t round) const noexcept { return round * ranks_ + rank_; }

  comm::Transfers& transfers_;
  int rank_;
  int64_t ranks_, at_once_, rounds_;
  int64_t messages_ = 0;
};

}  // namespace penstock::exec
