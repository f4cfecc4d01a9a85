// What only `cyclic` promises; plan_test.cpp holds it to what every plan does.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <memory>
#include <set>

#include "plan/algorithm.hpp"

namespace penstock::plan::cyclic_test {
namespace {

using layout::Geometry;

std::unique_ptr<const Plan> place(const Parameters& parameters, const Team& team,
                                  const Crowd& crowd, const Geometry& geometry = {}) {
  auto placed = find_algorithm("cyclic")->place(parameters, team, crowd, geometry);
  EXPECT_TRUE(placed);
  return *std::move(placed);
}

// Every rank writes all of [begin, end).
Crowd all_write(int ranks, Off begin, Off end) {
  return Crowd::from_classes({{0, ranks, {begin, end, end - begin}, 0}}, ranks);
}

// The rank that writes each stripe of a call.
std::map<int64_t, std::set<int>> ranks_by_stripe(const Plan& plan, int64_t stripe_bytes) {
  std::map<int64_t, std::set<int>> ranks;
  for (int w = 0; w < plan.writers(); ++w)
    for (int c = 0; c < plan.cycles(w); ++c) {
      const Extent e = plan.extent(w, c);
      if (e.empty()) continue;
      EXPECT_EQ(e.begin / stripe_bytes, (e.end - 1) / stripe_bytes) << "a page of two stripes";
      ranks[e.begin / stripe_bytes].insert(plan.writer_rank(w));
    }
  return ranks;
}

TEST(Cyclic, DealsStripeIToWriterIModW) {
  const auto plan = place({3, 4096, 8192}, {6, 1, 6}, all_write(6, 20000, 500000));
  const auto ranks = ranks_by_stripe(*plan, 8192);
  EXPECT_EQ(ranks.size(), size_t(499999 / 8192 - 20000 / 8192 + 1));
  for (const auto& [stripe, writers] : ranks)
    EXPECT_EQ(writers, std::set<int>{int(stripe % 3) * 2}) << "stripe " << stripe;
}

// Pages of a network file system stay with one node, whatever a program writes when.
RC_GTEST_PROP(Cyclic, AStripeHasTheSameWriterInEveryCall, ()) {
  const Team team{*rc::gen::inRange(1, 12), 1, *rc::gen::inRange(1, 5)};
  Geometry geometry;
  geometry.stripe_bytes = *rc::gen::element<int64_t>(0, 65536);
  const auto cycle = *rc::gen::element<int64_t>(0, 4096);
  std::map<int64_t, std::set<int>> owners;
  for (int call = 0; call < 6; ++call) {
    const auto begin = *rc::gen::inRange<Off>(0, 3000000);
    const Off end = begin + *rc::gen::inRange<Off>(1, 900000);
    const auto plan = place({0, cycle, 65536}, team, all_write(team.ranks, begin, end), geometry);
    for (const auto& [stripe, ranks] : ranks_by_stripe(*plan, 65536))
      owners[stripe].insert(ranks.begin(), ranks.end());
  }
  for (const auto& [stripe, ranks] : owners) RC_ASSERT(ranks.size() == 1u);
}

TEST(Cyclic, WritesAStripeThatIsLargerThanTheCyclePieceByPiece) {
  const auto plan = place({2, 8192, 20480}, {2, 1, 2}, all_write(2, 20480, 4 * 20480));
  EXPECT_EQ(plan->cycles(), 6);
  EXPECT_EQ(plan->writer_rank(0), 1);  // stripe 1 is the first of this call
  EXPECT_EQ(plan->extent(0, 0), (Extent{20480, 28672}));
  EXPECT_EQ(plan->extent(0, 2), (Extent{36864, 40960}));
  EXPECT_EQ(plan->extent(0, 3), (Extent{61440, 69632}));
  EXPECT_EQ(plan->extent(1, 2), (Extent{57344, 61440}));
  EXPECT_TRUE(plan->extent(1, 3).empty());  // stripe 4 is nobody's in this call
}

TEST(Cyclic, ACycleIsAtMostAStripe) {
  const auto plan = place({2, 1 << 20, 65536}, {2, 1, 2}, all_write(2, 0, 1 << 20));
  EXPECT_EQ(plan->extent(0, 0).size(), 65536);
  EXPECT_EQ(plan->cycles(), 8);
}

TEST(Cyclic, TakesTheStripeOfTheFileSystem) {
  Geometry geometry;
  geometry.stripe_bytes = 262144;
  const Crowd crowd = all_write(4, 0, 1 << 26);
  EXPECT_EQ(place({}, {4, 1, 4}, crowd, geometry)->extent(0, 0).size(), 262144);
  EXPECT_EQ(place({}, {4, 1, 4}, crowd)->extent(0, 0).size(), kDefaultCycleBytes);
  // One that is given never shares a unit of the file system.
  EXPECT_EQ(place({0, 0, 300000}, {4, 1, 4}, crowd, geometry)->extent(0, 0).size(), 524288);
}

TEST(Cyclic, ACallWithinOneStripeHasOneWriter) {
  const auto plan = place({4, 0, 65536}, {4, 1, 4}, all_write(4, 3 * 65536 + 10, 3 * 65536 + 20));
  EXPECT_EQ(plan->cycles(0), 1);
  EXPECT_EQ(plan->writer_rank(0), 3);
  for (int w = 1; w < 4; ++w) EXPECT_EQ(plan->cycles(w), 0);
}

TEST(Cyclic, SpreadsWritersOverNodesWhereverACallBegins) {
  for (const Off begin : {0, 1 << 20, 3 << 20}) {
    const auto plan = place({4, 0, 1 << 20}, {8, 4, 2}, all_write(8, begin, begin + (1 << 24)));
    std::set<int> ranks;
    for (int w = 0; w < plan->writers(); ++w) ranks.insert(plan->writer_rank(w));
    EXPECT_EQ(ranks, (std::set{0, 2, 4, 6})) << begin;
  }
}

TEST(Cyclic, TheExtentOfACallHasNoSayInHowManyWrite) {
  EXPECT_EQ(place({}, {8, 2, 2}, all_write(8, 0, 1))->writers(), 4);
  EXPECT_EQ(place({}, {8, 2, 2}, all_write(8, 0, 1 << 30))->writers(), 4);
}

TEST(Cyclic, DealsToAHundredThousandRanksInTimeThatDoesNotFollowThem) {
  const Crowd crowd = Crowd::from_classes({{0, 100000, {0, 4096, 4096}, 4096}}, 100000);
  const auto plan = place({512, 0, 1 << 20}, {100000, 1000, 64}, crowd);
  EXPECT_EQ(plan->cycles(), 1);  // 391 stripes for 512 writers
  int senders = 0;
  crowd.for_each_touching(plan->extent(300, 0), [&](int, const Summary&) { ++senders; });
  EXPECT_EQ(senders, 256);
  const Summary last = crowd.summary(99999);
  EXPECT_EQ(plan->reached(last, 99999).begin, 390);
  EXPECT_EQ(plan->reached(last, 99999).end, 391);
}

TEST(Cyclic, RefusesANegativeNumberOfWriters) {
  const auto placed = find_algorithm("cyclic")->place({-1}, {2, 1, 2}, all_write(2, 0, 10), {});
  ASSERT_FALSE(placed);
  EXPECT_EQ(placed.error().error_class, ErrorClass::argument);
  EXPECT_NE(placed.error().message().find("writers"), std::string::npos);
}

}  // namespace
}  // namespace penstock::plan::cyclic_test
