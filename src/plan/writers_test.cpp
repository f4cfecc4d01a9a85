// Where writers are: on every node, however ranks are dealt to nodes.
#include "plan/writers.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "plan/groups.hpp"

namespace penstock::plan::writers_test {
namespace {

Team some_team() {
  Team t;
  t.nodes = *rc::gen::inRange(1, 9);
  t.turn = *rc::gen::inRange(0, 4);
  t.ranks = *rc::gen::inRange(t.nodes * std::max(1, t.turn), 200);
  t.cores_per_node = *rc::gen::inRange(1, 9);
  return t;
}

// An even share of any node's ranks, to the nearest one.
RC_GTEST_PROP(WriterRanks, AreSpreadOverTheNodes, ()) {
  const Team team = some_team();
  const WriterRanks ranks(team, *rc::gen::inRange(1, team.ranks + 1));
  std::vector<int> writers(size_t(team.nodes)), all(size_t(team.nodes));
  for (int rank = 0; rank < team.ranks; ++rank) ++all[size_t(team.dealing().node_of(rank))];
  for (int w = 0; w < ranks.writers(); ++w) {
    RC_ASSERT(ranks.writer_at(ranks.rank_of(w)) == std::optional(w));
    ++writers[size_t(team.dealing().node_of(ranks.rank_of(w)))];
  }
  for (size_t node = 0; node < all.size(); ++node) {
    const int64_t share = int64_t{all[node]} * ranks.writers();
    RC_ASSERT(writers[node] >= share / team.ranks);
    RC_ASSERT(writers[node] <= divide_up(share, team.ranks));
  }
}

// A group has ranks of all nodes where they are dealt in turn; its writer is of the next one.
RC_GTEST_PROP(Groups, HaveTheirWritersOnOneNodeAfterTheOther, ()) {
  Team team = some_team();
  team.turn = std::max(1, team.turn);
  const int round = team.nodes * team.turn;
  const Groups groups(team, *rc::gen::inRange(1, team.ranks / round + 1));
  for (int g = 0; g < groups.count(); ++g)
    RC_ASSERT(team.dealing().node_of(groups.writer_rank(g)) == g % team.nodes);
}

TEST(WriterRanks, OfNodesInTurnAreNotAllOnTheFirst) {
  const Team team{.ranks = 16, .nodes = 2, .cores_per_node = 4, .turn = 1};
  ASSERT_EQ(default_writers(team), 8);
  std::vector<int> ranks;
  for (int w = 0; w < 8; ++w) ranks.push_back(WriterRanks(team, 8).rank_of(w));
  EXPECT_EQ(ranks, (std::vector{0, 4, 8, 12, 1, 5, 9, 13}));
}

}  // namespace
}  // namespace penstock::plan::writers_test
