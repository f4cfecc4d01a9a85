// Ranks as runs.
#include "exec/node_map.hpp"

#include <algorithm>

namespace penstock::exec {

NodeMap::NodeMap(std::span<const int32_t> node_of_rank) {
  for (size_t rank = 0; rank < node_of_rank.size(); ++rank) append(int(rank), node_of_rank[rank]);
  for (const Node& n : nodes_) largest_ = std::max(largest_, n.ranks);
}

void NodeMap::append(int rank, int node) {
  Run* const last = runs_.empty() ? nullptr : &runs_.back();
  if (last != nullptr && last->count == 1 && node == last->node + 1) last->deal = Deal::turn;
  const bool is_next =
      last != nullptr && node == last->last_node() + (last->deal == Deal::turn ? 1 : 0);
  if (is_next)
    ++last->count;
  else
    runs_.push_back({rank, 1, node, Deal::block});
  if (size_t(node) >= nodes_.size())
    nodes_.resize(size_t(node) + 1, Node{int(runs_.size()) - 1, 0});
  ++nodes_[size_t(node)].ranks;
}

int NodeMap::node_of(int rank) const noexcept {
  const Run& run = *(std::ranges::upper_bound(runs_, rank, {}, &Run::first) - 1);
  return run.deal == Deal::turn ? run.node + (rank - run.first) : run.node;
}

int NodeMap::member(int node, int place) const noexcept {
  for (auto run = runs_.begin() + nodes_[size_t(node)].first_run; run != runs_.end(); ++run) {
    if (node < run->node || node > run->last_node()) continue;
    const int here = run->deal == Deal::turn ? 1 : run->count;
    if (place < here) return run->first + (run->deal == Deal::turn ? node - run->node : place);
    place -= here;
  }
  return -1;
}

Result<NodeMap> map_nodes(comm::Comm& comm) {
  const int32_t mine = comm.own_node();
  std::vector<int32_t> node_of_rank(size_t(comm.size()));
  if (auto r = comm.allgather(std::as_bytes(std::span(&mine, 1)),
                              std::as_writable_bytes(std::span(node_of_rank)));
      !r)
    return tl::unexpected(std::move(r).error());
  return NodeMap(node_of_rank);
}

}  // namespace penstock::exec
