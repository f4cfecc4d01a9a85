// How ranks are dealt to nodes: a block of consecutive ranks to each, or a few to each in turn
// (hosts without counts, --map-by node, Slurm's cyclic and plane). Nothing takes time that grows
// with the number of ranks, but for finding out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace penstock {

class Dealing {
 public:
  // `turn`: ranks that a node is dealt before the next one is, again and again; 0: a block to each.
  // REQUIRES ranks >= nodes * max(1, turn).
  constexpr Dealing(int ranks, int nodes, int turn = 0) noexcept
      : ranks_(ranks), nodes_(nodes), turn_(turn) {}

  int nodes() const noexcept { return nodes_; }
  int turn() const noexcept { return turn_; }
  int node_of(int rank) const noexcept {
    return turn_ > 0 ? rank / turn_ % nodes_ : int(int64_t{rank} * nodes_ / ranks_);
  }
  int first_of(int node) const noexcept { return turn_ > 0 ? node * turn_ : before(node); }
  int ranks_of(int node) const noexcept { return before(node + 1) - before(node); }

  // All ranks in the order of their nodes, those of a node ascending: where one is, and which is
  // there.
  int position_of(int rank) const noexcept {
    if (turn_ == 0) return rank;
    return before(node_of(rank)) + rank / turn_ / nodes_ * turn_ + rank % turn_;
  }
  int rank_at(int position) const noexcept {
    if (turn_ == 0) return position;
    const int node = node_at(position), i = position - before(node);
    return (i / turn_ * nodes_ + node) * turn_ + i % turn_;
  }

 private:
  // Ranks of the nodes before that one.
  int before(int node) const noexcept {
    if (turn_ == 0) return int((int64_t{node} * ranks_ + nodes_ - 1) / nodes_);
    const int round = nodes_ * turn_;
    return node * (ranks_ / round * turn_) + std::min(node * turn_, ranks_ % round);
  }
  int node_at(int position) const noexcept {
    int node = 0;
    for (int end = nodes_; end - node > 1;) {
      const int middle = node + (end - node) / 2;
      (before(middle) <= position ? node : end) = middle;
    }
    return node;
  }

  int ranks_, nodes_, turn_;
};

// `first`: of each rank, the lowest rank of its node. 0 also where there is no such order.
inline int turn_of(std::span<const int> first, int nodes) noexcept {
  const auto ranks = int(first.size());
  const auto turn = int(std::ranges::find_if(first, [](int f) { return f != 0; }) - first.begin());
  if (int64_t{nodes} * turn >= ranks) return 0;
  const Dealing dealt(ranks, nodes, turn);
  for (int rank = 0; rank < ranks; ++rank)
    if (first[size_t(rank)] != dealt.first_of(dealt.node_of(rank))) return 0;
  return turn;
}

}  // namespace penstock
