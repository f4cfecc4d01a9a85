// Who sends to me, and how their bytes lie in the file.
#include "exec/peers.hpp"

#include <algorithm>
#include <utility>

namespace penstock::exec {
namespace {

constexpr int kDescriptionTag = 1;

}  // namespace

bool ShapeCache::knows(Hash shape) const { return find(shape) != nullptr; }

const layout::LoopTree* ShapeCache::find(Hash shape) const {
  for (const Known& known : shapes_)
    if (known.shape == shape) return &known.tree;
  return nullptr;
}

void ShapeCache::learn(Hash shape, layout::LoopTree tree, int64_t bytes) {
  shapes_.push_back({shape, std::move(tree), bytes});
  bytes_ += bytes;
  while (shapes_.size() > kShapes || (shapes_.size() > 1 && bytes_ > kBytes)) {
    bytes_ -= shapes_.front().bytes;
    shapes_.pop_front();
  }
}

void Peers::send_descriptions(comm::Comm& comm, comm::Transfers& transfers, const plan::Plan& plan,
                              const plan::Summary& mine, const layout::LoopTree& filetype) {
  if (mine.empty() || mine.contiguous()) return;
  description_.clear();
  const plan::IntRange reached = plan.reached(mine, comm.rank());
  for (int writer = reached.begin; writer < reached.end; ++writer) {
    const int to = plan.writer_rank(writer);
    if (to == comm.rank() || told_[to].knows(mine.shape)) continue;
    if (description_.empty()) filetype.serialise(description_);
    told_[to].learn(mine.shape, {}, mine.description_bytes);
    transfers.send(to, kDescriptionTag, description_);
    ++sent_;
  }
}

// A description on its way to this rank.
struct Peers::Arrival {
  int rank;
  plan::Summary summary;
  std::vector<std::byte> bytes;
};

Result<std::vector<Peer>> Peers::introduce(comm::Comm& comm, comm::Transfers& transfers,
                                           const plan::Plan& plan, const plan::Crowd& crowd,
                                           const layout::LoopTree& filetype) {
  std::vector<std::pair<int, plan::Summary>> senders;
  std::deque<Arrival> arrivals;  // a deque: the receive buffers must not move
  if (const auto writer = plan.writer_of(comm.rank()); writer && plan.cycles(*writer) > 0) {
    const Extent domain{plan.extent(*writer, 0).begin,
                        plan.extent(*writer, plan.cycles(*writer) - 1).end};
    const plan::IntRange may_send = plan.senders(*writer);
    const auto expect = [&](int rank, const plan::Summary& s) {
      if (rank == comm.rank() || !plan.reached(s, rank).contains(*writer)) return;
      senders.emplace_back(rank, s);
      if (!s.contiguous() && !known_[rank].knows(s.shape))
        arrivals.push_back({rank, s, std::vector<std::byte>(s.description_bytes)});
    };
    crowd.for_each_touching(domain, may_send.begin, may_send.end, expect);
  }
  for (Arrival& a : arrivals) transfers.receive(a.rank, kDescriptionTag, a.bytes);
  send_descriptions(comm, transfers, plan, crowd.summary(comm.rank()), filetype);
  if (Result<void> r = transfers.finish(); !r) return tl::unexpected(r.error());

  description_ = {};  // may be as large as the list of the rank's blocks
  for (Arrival& a : arrivals) {
    Result<layout::LoopTree> tree = layout::LoopTree::deserialise(a.bytes);
    if (!tree) return tl::unexpected(tree.error());
    a.bytes = {};
    known_[a.rank].learn(a.summary.shape, *std::move(tree), a.summary.description_bytes);
  }
  std::vector<Peer> peers;
  peers.reserve(senders.size());
  for (const auto& [rank, s] : senders) {
    const layout::LoopTree* tree = s.contiguous() ? nullptr : known_[rank].find(s.shape);
    Result<plan::Part> part = plan::locate(s, tree != nullptr ? *tree : layout::LoopTree());
    if (!part) return tl::unexpected(part.error());
    layout::Cursor cursor = part->view.cursor();
    peers.push_back({rank, s, *std::move(part), std::move(cursor)});
  }
  return peers;
}

}  // namespace penstock::exec
