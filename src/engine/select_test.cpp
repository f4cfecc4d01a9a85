// Which algorithm collective writes run by, where several nodes may not write one unit.
#include "engine/select.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace penstock::engine::select_test {
namespace {

using layout::Geometry;
using layout::Sharing;

constexpr int64_t kUnit = int64_t{1} << 20;
constexpr plan::Team kTwoNodes{4, 2, 2}, kOneNode{4, 1, 4};

Geometry geometry_of(Sharing sharing) {
  Geometry g;
  g.stripe_bytes = kUnit;
  g.sharing = sharing;
  return g;
}

// Every rank writes all of [begin, end).
plan::Crowd all_write(const plan::Team& team, Off begin, Off end) {
  return plan::Crowd::from_classes({{0, team.ranks, {begin, end, end - begin}, 0}}, team.ranks);
}

// Rank after rank, one behind the other.
plan::Crowd side_by_side(const plan::Team& team) {
  return plan::Crowd::from_classes({{0, team.ranks, {0, kUnit, kUnit}, kUnit}}, team.ranks);
}

std::string chosen(const plan::Crowd& crowd, const plan::Team& team, Sharing sharing) {
  return std::string(decide(crowd, team, geometry_of(sharing)).name);
}

TEST(Select, LetsRanksWriteForThemselvesOnlyWhereUnitsMayBeShared) {
  EXPECT_EQ(chosen(side_by_side(kTwoNodes), kTwoNodes, Sharing::any), "individual");
  EXPECT_EQ(chosen(side_by_side(kTwoNodes), kTwoNodes, Sharing::unit_per_node), "two_phase");
  EXPECT_EQ(chosen(side_by_side(kTwoNodes), kTwoNodes, Sharing::unit_keeps_node), "cyclic");
  for (const Sharing s : {Sharing::unit_per_node, Sharing::unit_keeps_node})
    EXPECT_EQ(chosen(side_by_side(kOneNode), kOneNode, s), "individual");
}

TEST(Select, ShufflesInterleavedBytesWithFixedWritersOnlyWhereItMust) {
  const auto interleaved = [](const plan::Team& team, Sharing sharing) {
    return chosen(all_write(team, 0, 10 * kUnit), team, sharing);
  };
  EXPECT_EQ(interleaved(kTwoNodes, Sharing::any), "two_phase");
  EXPECT_EQ(interleaved(kTwoNodes, Sharing::unit_per_node), "two_phase");
  EXPECT_EQ(interleaved(kTwoNodes, Sharing::unit_keeps_node), "cyclic");
  EXPECT_EQ(interleaved(kOneNode, Sharing::unit_keeps_node), "two_phase");
}

// Pages of their own size would be larger than memory.
TEST(Select, LetsRanksOfACallThatIsNearlyAllHolesWriteForThemselves) {
  const auto far_apart = [](const plan::Team& team) {
    return plan::Crowd::from_classes({{0, team.ranks, {0, int64_t{1} << 62, kUnit}, 0}},
                                     team.ranks);
  };
  EXPECT_EQ(chosen(far_apart(kOneNode), kOneNode, Sharing::any), "individual");
  EXPECT_EQ(chosen(far_apart(kTwoNodes), kTwoNodes, Sharing::unit_per_node), "two_phase");
}

TEST(Select, TakesAMethodAtItsWordWhereThatLosesNothing) {
  for (const plan::Algorithm* a : plan::algorithms()) {
    const auto taken = [a](const plan::Team& team, Sharing sharing) {
      return fixed(a, team, geometry_of(sharing)) == a;
    };
    EXPECT_TRUE(taken(kTwoNodes, Sharing::any)) << a->name;
    EXPECT_TRUE(taken(kOneNode, Sharing::unit_keeps_node)) << a->name;
    EXPECT_EQ(taken(kTwoNodes, Sharing::unit_per_node), a->owns_blocks) << a->name;
    EXPECT_EQ(taken(kTwoNodes, Sharing::unit_keeps_node), a->keeps_writers) << a->name;
    EXPECT_TRUE(a->owns_blocks || !a->keeps_writers) << a->name;
  }
}

// With the node that wrote a unit first, for as long as the file is open.
RC_GTEST_PROP(Select, AUnitOfNfsIsWrittenByOneNodeInEveryCall, ()) {
  const int nodes = *rc::gen::inRange(2, 4), per_node = *rc::gen::inRange(1, 4);
  const plan::Team team{nodes * per_node, nodes, *rc::gen::inRange(1, 4)};
  const Geometry geometry = geometry_of(Sharing::unit_keeps_node);
  const plan::Parameters parameters{.writers = *rc::gen::inRange(0, team.ranks + 1),
                                    .writer = *rc::gen::inRange(0, team.ranks)};
  const plan::Algorithm* const asked = *rc::gen::elementOf(
      std::vector<const plan::Algorithm*>(plan::algorithms().begin(), plan::algorithms().end()));
  std::map<int64_t, int> node_of;
  Off begin = 0;
  for (int call = 0; call < 8; ++call) {
    const Off end = begin + *rc::gen::inRange<Off>(1, 5 * kUnit);
    const plan::Crowd crowd = all_write(team, begin, end);
    const plan::Algorithm* const named = fixed(asked, team, geometry);
    const plan::Algorithm& algorithm = named != nullptr ? *named : decide(crowd, team, geometry);
    const auto plan = algorithm.place(plan::taken_by(algorithm, parameters), team, crowd, geometry);
    RC_ASSERT(bool(plan));
    for (int w = 0; w < (*plan)->writers(); ++w)
      for (int c = 0; c < (*plan)->cycles(w); ++c) {
        const Extent e = (*plan)->extent(w, c);
        const int node = (*plan)->writer_rank(w) / per_node;
        for (int64_t unit = e.begin / kUnit; !e.empty() && unit * kUnit < e.end; ++unit)
          RC_ASSERT(node_of.emplace(unit, node).first->second == node);
      }
    begin = end;
  }
}

TEST(Select, ReadersTakeTurnsWithWritersOnlyWhereANodeMayKeepAUnit) {
  const auto reads = [](const plan::Crowd& crowd, Sharing sharing) {
    return std::string(decide_reading(crowd, kTwoNodes, geometry_of(sharing)).name);
  };
  for (const Sharing s : {Sharing::any, Sharing::unit_per_node}) {
    EXPECT_EQ(reads(side_by_side(kTwoNodes), s), "individual");
    EXPECT_EQ(reads(all_write(kTwoNodes, 0, kUnit), s), "two_phase");
    EXPECT_EQ(fixed_reading(plan::find_algorithm("individual"), kTwoNodes, geometry_of(s)),
              plan::find_algorithm("individual"));
  }
  const Sharing keeps = Sharing::unit_keeps_node;
  EXPECT_EQ(reads(side_by_side(kTwoNodes), keeps), "cyclic");
  EXPECT_EQ(fixed_reading(plan::find_algorithm("individual"), kTwoNodes, geometry_of(keeps)),
            nullptr);
}

}  // namespace
}  // namespace penstock::engine::select_test
