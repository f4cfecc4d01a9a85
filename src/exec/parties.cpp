#include "exec/parties.hpp"

#include <algorithm>

namespace penstock::exec {

Brought brought_by(const Parties& all, int rank, const Turn& turn) {
  const auto peer = std::ranges::lower_bound(all.peers, rank, {}, &Peer::rank);
  if (peer == all.peers.end() || peer->rank != rank) return {};
  const plan::Part& theirs = peer->part;
  return {&*peer, all.plan.part(theirs.view, theirs.own, rank, turn.writer, turn.cycle)};
}

StreamRange brought_by_own(const Parties& all, const Turn& turn) {
  if (all.own.empty() || !all.plan.reached(all.summary, all.rank).contains(turn.writer)) return {};
  return all.plan.part(all.view, all.own, all.rank, turn.writer, turn.cycle);
}

namespace {

// Asks only those whose bytes lie around there.
bool anybody_has_bytes(const Parties& all, const Turn& turn) {
  bool found = !brought_by_own(all, turn).empty();
  if (found) return true;
  for_each_owing(all, turn, [&](int rank, const plan::Summary&) {
    found = found || !brought_by(all, rank, turn).part.empty();
  });
  return found;
}

}  // namespace

int next_with_bytes(const Parties& all, int writer, int from) {
  const int none = all.plan.cycles(writer);
  if (from >= none || anybody_has_bytes(all, {writer, from, all.plan.extent(writer, from)}))
    return std::min(from, none);
  int first = none;  // all are asked, since what comes next may be far away
  const auto consider = [&](const layout::FileView& view, StreamRange own, int rank) {
    if (first > from) first = std::min(first, all.plan.next_cycle(view, own, rank, writer, from));
  };
  if (all.plan.reached(all.summary, all.rank).contains(writer))
    consider(all.view, all.own, all.rank);
  for (const Peer& p : all.peers) consider(p.part.view, p.part.own, p.rank);
  return first;
}

void cover(layout::Coverage& coverage, const layout::FileView& view, layout::Cursor& cursor,
           StreamRange part) {
  const Extent extent = view.extent_of(part);
  if (extent.size() == part.size()) return coverage.add(extent);
  cursor.seek(part.begin);
  coverage.add(cursor, part.size());
}

}  // namespace penstock::exec
