// Who takes part in a collective call, and with what; and whose bytes are in whose page. The same
// for bytes on their way to the file and back.
#pragma once

#include <vector>

#include "exec/peers.hpp"
#include "layout/coverage.hpp"
#include "plan/plan.hpp"
#include "plan/summary.hpp"

namespace penstock::exec {

struct Parties {
  const plan::Plan& plan;
  const plan::Crowd& crowd;
  const layout::FileView& view;
  StreamRange own;
  plan::Summary summary;
  int rank;
  std::vector<Peer>& peers;  // ascending by rank: those who have bytes in this rank's pages
};

// A writer's cycle.
struct Turn {
  int writer = 0, cycle = 0;
  Extent where;
};

// Calls visit(rank, summary) for each other rank that has, perhaps, bytes in it.
template <class Visit>
void for_each_owing(const Parties& all, const Turn& turn, Visit&& visit) {
  const plan::IntRange senders = all.plan.senders(turn.writer);
  const auto ask = [&](int rank, const plan::Summary& s) {
    if (rank != all.rank && all.plan.owes(s, rank, turn.writer, turn.cycle)) visit(rank, s);
  };
  all.crowd.for_each_touching(turn.where, senders.begin, senders.end, ask);
}

// What another rank has in it; nothing when it is not among this rank's peers.
struct Brought {
  Peer* peer = nullptr;
  StreamRange part;
};
Brought brought_by(const Parties& all, int rank, const Turn& turn);

// What this rank has in it itself.
StreamRange brought_by_own(const Parties& all, const Turn& turn);

// The first cycle at or behind `from` in which anybody has bytes in the page of `writer`, which is
// this rank; the writer's number of cycles when there is none.
int next_with_bytes(const Parties& all, int writer, int from);

// Notes the places of a part of a stream. `cursor` is over its view.
void cover(layout::Coverage& coverage, const layout::FileView& view, layout::Cursor& cursor,
           StreamRange part);

}  // namespace penstock::exec
