// The map of ranks and nodes, against plain lists.
#include "exec/node_map.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace penstock::exec::node_map_test {
namespace {

// The map against the list that it was made from.
void expect_same(const std::vector<int32_t>& node_of_rank) {
  const NodeMap map(node_of_rank);
  const int nodes = *std::ranges::max_element(node_of_rank) + 1;
  ASSERT_EQ(map.nodes(), nodes);
  std::vector<int> size(size_t(nodes), 0);
  for (int rank = 0; rank < int(node_of_rank.size()); ++rank) {
    const int node = node_of_rank[size_t(rank)];
    EXPECT_EQ(map.node_of(rank), node) << "rank " << rank;
    EXPECT_EQ(map.member(node, size[size_t(node)]++), rank);
  }
  for (int node = 0; node < nodes; ++node) EXPECT_EQ(map.size_of(node), size[size_t(node)]);
  EXPECT_EQ(map.largest(), *std::ranges::max_element(size));
}

TEST(NodeMap, KnowsEveryRanksNodeHoweverRanksAreDealt) {
  expect_same({0});
  expect_same({0, 0, 0});
  expect_same({0, 1, 2});
  expect_same({0, 0, 1, 1, 2, 2});
  expect_same({0, 0, 0, 1, 1, 2, 2, 2, 2});
  expect_same({0, 1, 2, 0, 1, 2, 0, 1, 2});
  expect_same({0, 0, 1, 1, 0, 0, 1, 1});
  expect_same({0, 1, 1, 0, 2, 0, 1, 3});
  expect_same({0, 1, 0, 1, 1, 1, 0, 0, 2, 2, 1});
}

}  // namespace
}  // namespace penstock::exec::node_map_test
