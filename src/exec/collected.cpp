// The parts of a cycle, the writer's own among them, as the views say.
#include "exec/collected.hpp"

#include <algorithm>
#include <numeric>

#include "exec/cycle.hpp"

namespace penstock::exec {
namespace {

// A sender's bytes in its view, with a cursor over them.
struct Source {
  const layout::FileView* view;
  StreamRange own;
  layout::Cursor* cursor;
};

Source source_of(const CollectiveCall& call, int rank) {
  if (rank == call.rank) return {&call.view, call.own, &call.cursor};
  const auto peer = std::ranges::lower_bound(call.peers, rank, {}, &Peer::rank);
  if (peer == call.peers.end() || peer->rank != rank) return {nullptr, {}, nullptr};
  return {&peer->part.view, peer->part.own, &peer->cursor};
}

}  // namespace

Collected::Shape Collected::shape(int cycle) {
  streams_.clear();
  Shape s;
  const auto add = [&](int rank, const plan::Summary& summary) {
    if (!call_.plan.owes(summary, rank, writer_, cycle)) return;
    const Source source = source_of(call_, rank);
    if (source.view == nullptr) return;
    const StreamRange part = call_.plan.part(*source.view, source.own, rank, writer_, cycle);
    if (part.empty()) return;
    const Extent e = source.view->extent_of(part);
    s.where = hull_of(s.where, e);
    s.granule = std::gcd(s.granule, std::gcd(e.begin, e.end));
    source.cursor->seek(part.begin);
    streams_.push_back({source.cursor, part.size()});
  };
  const plan::IntRange senders = call_.plan.senders(writer_);
  call_.crowd.for_each_touching(call_.plan.extent(writer_, cycle), senders.begin, senders.end, add);
  s.is_list = s.where.size() > call_.plan.page_bytes();
  return s;
}

}  // namespace penstock::exec
