// What only `designated_writer` and `dedicated_writer` promise; plan_test.cpp holds them to what
// every plan does.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "plan/algorithm.hpp"

namespace penstock::plan::designated_writer_test {
namespace {

Result<std::unique_ptr<const Plan>> place(const Parameters& parameters, int ranks) {
  const Crowd crowd = Crowd::from_classes({{0, ranks, {0, 4096, 4096}, 4096}}, ranks);
  return find_algorithm("designated_writer")->place(parameters, {ranks, 1, 64}, crowd, {});
}

std::string refusal(const Parameters& parameters) {
  const auto placed = place(parameters, 4);
  return placed ? "placed" : placed.error().message();
}

TEST(DesignatedWriter, OneRankWritesAllInFileOrder) {
  const auto plan = place({0, 8192, 0, 2}, 5);
  ASSERT_TRUE(plan);
  EXPECT_EQ((*plan)->writers(), 1);
  EXPECT_EQ((*plan)->writer_rank(0), 2);
  EXPECT_EQ((*plan)->writer_of(2), std::optional(0));
  EXPECT_EQ((*plan)->writer_of(0), std::nullopt);
  EXPECT_EQ((*plan)->cycles(), 3);
  EXPECT_EQ((*plan)->extent(0, 1), (Extent{8192, 16384}));
  EXPECT_EQ((*plan)->extent(0, 2), (Extent{16384, 20480}));
}

TEST(DesignatedWriter, IsRankZeroWhereNobodySays) { EXPECT_EQ((*place({}, 5))->writer_rank(0), 0); }

TEST(DesignatedWriter, IsTheLastRankOfAFileThatFewerOpened) {
  EXPECT_EQ((*place({0, 0, 0, 7}, 3))->writer_rank(0), 2);
}

TEST(DesignatedWriter, RefusesSeveralWritersAndNoRank) {
  EXPECT_NE(refusal({2}).find("writers must be left out"), std::string::npos);
  EXPECT_NE(refusal({0, 0, 0, -1}).find("writer must be a rank"), std::string::npos);
  EXPECT_EQ(refusal({1}), "placed");
}

TEST(DedicatedWriter, IsPlacedAsADesignatedOneAndWritesBehind) {
  const Algorithm& a = *find_algorithm("dedicated_writer");
  EXPECT_TRUE(a.writes_behind);
  EXPECT_FALSE(find_algorithm("designated_writer")->writes_behind);
  const Crowd crowd = Crowd::from_classes({{0, 5, {0, 4096, 4096}, 4096}}, 5);
  const auto plan = a.place({0, 8192, 0, 2}, {5, 1, 64}, crowd, {});
  ASSERT_TRUE(plan);
  EXPECT_EQ((*plan)->writer_rank(0), 2);
  EXPECT_EQ((*plan)->cycles(), 3);
  EXPECT_EQ((*plan)->extent(0, 1), (Extent{8192, 16384}));
  const auto refused = a.place({2}, {5, 1, 64}, crowd, {});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("dedicated_writer"), std::string::npos);
}

TEST(DesignatedWriter, HearsAHundredThousandRanksInTimeThatDoesNotFollowThem) {
  const auto plan = place({0, 1 << 20}, 100000);
  ASSERT_TRUE(plan);
  EXPECT_EQ((*plan)->cycles(), 391);
  const Crowd crowd = Crowd::from_classes({{0, 100000, {0, 4096, 4096}, 4096}}, 100000);
  int senders = 0;
  crowd.for_each_touching((*plan)->extent(0, 300), [&](int rank, const Summary& s) {
    EXPECT_TRUE((*plan)->owes(s, rank, 0, 300));
    ++senders;
  });
  EXPECT_EQ(senders, 256);
}

}  // namespace
}  // namespace penstock::plan::designated_writer_test
