// Where ranks are, however they are dealt.
#include "base/dealing.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace penstock::dealing_test {
namespace {

struct Dealt {
  int ranks, nodes, turn;
};

Dealt some_dealing() {
  const int nodes = *rc::gen::inRange(1, 9), turn = *rc::gen::inRange(0, 5);
  return {*rc::gen::inRange(nodes * std::max(1, turn), 100), nodes, turn};
}

// As a launcher does it, one by one.
std::vector<int> nodes_by_hand(const Dealt& d) {
  std::vector<int> nodes;
  for (int node = 0; int(nodes.size()) < d.ranks; node = (node + 1) % d.nodes) {
    const int many = d.turn > 0 ? d.turn
                                : (d.ranks * (node + 1) + d.nodes - 1) / d.nodes -
                                      (d.ranks * node + d.nodes - 1) / d.nodes;
    for (int i = 0; i < many && int(nodes.size()) < d.ranks; ++i) nodes.push_back(node);
  }
  return nodes;
}

RC_GTEST_PROP(Dealings, AreThoseOfALauncher, ()) {
  const Dealt d = some_dealing();
  const Dealing dealing(d.ranks, d.nodes, d.turn);
  const std::vector<int> nodes = nodes_by_hand(d);
  int position = 0;
  for (int node = 0; node < d.nodes; ++node) {
    RC_ASSERT(dealing.ranks_of(node) == std::ranges::count(nodes, node));
    RC_ASSERT(nodes[size_t(dealing.first_of(node))] == node);
    for (int rank = 0; rank < d.ranks; ++rank) {
      if (nodes[size_t(rank)] != node) continue;
      RC_ASSERT(dealing.node_of(rank) == node);
      RC_ASSERT(dealing.position_of(rank) == position);
      RC_ASSERT(dealing.rank_at(position) == rank);
      ++position;
    }
  }
}

RC_GTEST_PROP(Dealings, AreFoundOut, ()) {
  const Dealt d = some_dealing();
  const std::vector<int> nodes = nodes_by_hand(d);
  std::vector<int> first;
  for (const int node : nodes) first.push_back(int(std::ranges::find(nodes, node) - nodes.begin()));
  const int found = turn_of(first, d.nodes);
  for (int rank = 0; rank < d.ranks; ++rank)
    if (found > 0) RC_ASSERT(Dealing(d.ranks, d.nodes, found).node_of(rank) == nodes[size_t(rank)]);
  if (d.turn > 0 && d.ranks > d.nodes * d.turn && d.nodes > 1) RC_ASSERT(found == d.turn);
}

TEST(Dealings, InNoOrderAreTakenForBlocks) {
  EXPECT_EQ(turn_of(std::vector{0, 0, 2, 2, 0, 2}, 2), 0);
  EXPECT_EQ(turn_of(std::vector{0, 1, 1, 0}, 2), 0);
  EXPECT_EQ(turn_of(std::vector{0, 0, 0}, 1), 0);
}

}  // namespace
}  // namespace penstock::dealing_test
