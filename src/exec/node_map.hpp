// Which rank is on which node. Ranks that are dealt to the nodes in blocks are one run for each
// node; dealt in turn, one for each round: memory does not follow the number of ranks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/comm.hpp"

namespace penstock::exec {

class NodeMap {
 public:
  NodeMap() = default;
  // Nodes are numbered from 0 in the order of their lowest ranks (comm::Comm::own_node()).
  explicit NodeMap(std::span<const int32_t> node_of_rank);

  int nodes() const noexcept { return int(nodes_.size()); }
  int node_of(int rank) const noexcept;
  int size_of(int node) const noexcept { return nodes_[size_t(node)].ranks; }
  int largest() const noexcept { return largest_; }  // the ranks of the largest node
  // The rank that is so many places behind the node's lowest. REQUIRES place < size_of(node).
  int member(int node, int place) const noexcept;

 private:
  // Ranks first .. first+count-1, all on `node`, or each on the node behind that of the one before.
  enum class Deal : uint8_t { block, turn };
  struct Run {
    int first = 0, count = 0, node = 0;
    Deal deal = Deal::block;
    int last_node() const noexcept { return deal == Deal::turn ? node + count - 1 : node; }
  };
  struct Node {
    int first_run = 0, ranks = 0;
  };
  void append(int rank, int node);

  std::vector<Run> runs_;  // ascending
  std::vector<Node> nodes_;
  int largest_ = 0;
};

// Collective.
Result<NodeMap> map_nodes(comm::Comm& comm);

}  // namespace penstock::exec
