// What only the segmentation algorithms promise; plan_test.cpp holds them to what every plan does.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "plan/groups.hpp"

namespace penstock::plan::segmentation_test {
namespace {

using layout::FileView;
using layout::LoopTree;

constexpr int64_t kMiB = int64_t{1} << 20;

// Blocks of `block` bytes dealt to the ranks in turn.
struct Dealt {
  Dealt(int ranks, int64_t block, int64_t blocks) {
    for (int r = 0; r < ranks; ++r) {
      parts.push_back(
          {*FileView::make(r * block, 1,
                           *LoopTree::resized(LoopTree::bytes(block), 0, ranks * block)),
           {0, block * blocks}});
      summaries.push_back(summarise(parts.back().view, parts.back().own, 64));
    }
  }
  Result<std::shared_ptr<const Plan>> place(const char* name, const Parameters& p) const {
    auto placed =
        find_algorithm(name)->place(p, {int(parts.size()), 1, 64}, Crowd::from(summaries), {});
    if (!placed) return tl::unexpected(placed.error());
    return with_all_cuts(*std::move(placed), parts);
  }
  StreamRange part(const Plan& plan, int rank, int writer, int cycle) const {
    const Part& p = parts[size_t(rank)];
    return plan.part(p.view, p.own, rank, writer, cycle);
  }

  std::vector<Part> parts;
  std::vector<Summary> summaries;
};

TEST(Groups, AreConsecutiveRanksAndTheFirstOfEachWrites) {
  const Dealt d(24, 512, 8);
  for (const char* name : {"dynamic_segmentation", "static_segmentation"}) {
    const auto plan = d.place(name, {4, 4096});
    ASSERT_TRUE(plan);
    for (int r = 0; r < 24; ++r) {
      const IntRange reached = (*plan)->reached(d.summaries[size_t(r)], r);
      EXPECT_EQ(reached.begin, r / 6);
      EXPECT_EQ(reached.end, r / 6 + 1);
      EXPECT_EQ((*plan)->writer_rank(reached.begin), r / 6 * 6);
    }
  }
}

RC_GTEST_PROP(Groups, HoldEveryRankOnce, ()) {
  const int ranks = *rc::gen::inRange(1, 200), writers = *rc::gen::inRange(1, ranks + 1);
  const int nodes = *rc::gen::inRange(1, ranks + 1), turn = *rc::gen::inRange(0, ranks / nodes + 1);
  const Groups groups({ranks, nodes, 1, turn}, writers);
  int next = 0;
  for (int g = 0; g < groups.count(); ++g) {
    const IntRange members = groups.members(g);
    RC_ASSERT(members.begin == next && members.end > members.begin);
    RC_ASSERT(members.end - members.begin <= groups.most_members());
    RC_ASSERT(members.contains(groups.writer_rank(g)));
    for (int r = members.begin; r < members.end; ++r) {
      RC_ASSERT(groups.of(r) == g);
      RC_ASSERT(groups.writer_at(r) ==
                (r == groups.writer_rank(g) ? std::optional(g) : std::nullopt));
    }
    next = members.end;
  }
  RC_ASSERT(next == ranks);
}

RC_GTEST_PROP(Groups, KnowWhatTheirRanksWrite, ()) {
  std::vector<Summary> all;
  const int ranks = *rc::gen::inRange(1, 40);
  for (int r = 0; r < ranks; ++r) {
    const auto lo = *rc::gen::inRange<int64_t>(0, 5) * 100;
    const auto n = *rc::gen::inRange<int64_t>(0, 3) * 100;
    all.push_back(n == 0 ? Summary{} : Summary{lo, lo + n, n});
  }
  const int begin = *rc::gen::inRange(0, ranks), end = *rc::gen::inRange(begin, ranks) + 1;
  const GroupTotal total = total_of(Crowd::from(all), {begin, end});
  GroupTotal expected;
  for (int r = begin; r < end; ++r) {
    const Summary& s = all[size_t(r)];
    if (s.empty()) continue;
    expected.hull = expected.bytes == 0 ? s.extent()
                                        : Extent{std::min(expected.hull.begin, s.lo),
                                                 std::max(expected.hull.end, s.hi)};
    expected.bytes += s.bytes;
    expected.most_of_rank = std::max(expected.most_of_rank, s.bytes);
  }
  RC_ASSERT(total.bytes == expected.bytes && total.most_of_rank == expected.most_of_rank);
  RC_ASSERT(total.hull == expected.hull);
}

TEST(DynamicSegmentation, OneWriterWritesTheFileInOrderInEqualCycles) {
  const Dealt d(4, 1024, 16);
  const auto plan = d.place("dynamic_segmentation", {1, 16384});
  ASSERT_TRUE(plan);
  EXPECT_TRUE((*plan)->owns_blocks());
  ASSERT_EQ((*plan)->cycles(), 4);
  for (int c = 0; c < 4; ++c)
    EXPECT_EQ((*plan)->extent(0, c), (Extent{c * 16384, (c + 1) * 16384}));
}

// Ranks 0 and 1 of group 0 and ranks 2 and 3 of group 1 take turns in the file: a cycle of a group
// reaches over twice its bytes.
TEST(DynamicSegmentation, GroupsInterleave) {
  const Dealt d(4, 4096, 8);
  const auto plan = d.place("dynamic_segmentation", {2, 16384});
  ASSERT_TRUE(plan);
  EXPECT_FALSE((*plan)->owns_blocks());
  EXPECT_TRUE(find_algorithm("dynamic_segmentation")->scatters);
  ASSERT_EQ((*plan)->cycles(), 4);
  for (int rank = 0; rank < 4; ++rank)
    for (int c = 0; c < 4; ++c)
      EXPECT_EQ(d.part(**plan, rank, rank / 2, c), (StreamRange{c * 8192, (c + 1) * 8192}));
  EXPECT_TRUE((*plan)->extent(0, 1).overlaps((*plan)->extent(1, 1)));
}

TEST(DynamicSegmentation, CyclesAreAsManyAsTheBytesOfTheGroupNeed) {
  const std::vector<Summary> two{{0, 10 * kMiB, 10 * kMiB}, {0, 3 * kMiB, 3 * kMiB}};
  const auto plan =
      find_algorithm("dynamic_segmentation")->place({2, 2 * kMiB}, {2, 1, 2}, Crowd::from(two), {});
  ASSERT_TRUE(plan);
  EXPECT_EQ((*plan)->cycles(0), 5);
  EXPECT_EQ((*plan)->cycles(1), 2);
  EXPECT_EQ((*plan)->cycles(), 5);
  EXPECT_EQ((*plan)->cuts(0), 4);
}

TEST(DynamicSegmentation, KeepsNoMoreCutsThanFitHalfAMebibyte) {
  const std::vector<Summary> one{{0, int64_t{1} << 40, int64_t{1} << 40}};
  const auto plan =
      find_algorithm("dynamic_segmentation")->place({1, 4096}, {1, 1, 1}, Crowd::from(one), {});
  ASSERT_TRUE(plan);
  EXPECT_LT((*plan)->cuts(0), 65536);
}

TEST(DynamicSegmentation, GroupsAHundredThousandRanksInTimeThatDoesNotFollowThem) {
  const Crowd crowd = Crowd::from_classes({{0, 100000, {0, 4096, 4096}, 4096}}, 100000);
  const auto plan =
      find_algorithm("dynamic_segmentation")->place({512, kMiB}, {100000, 1000, 64}, crowd, {});
  ASSERT_TRUE(plan);
  const IntRange senders = (*plan)->senders(300);
  EXPECT_LE(senders.end - senders.begin, 196);
  int asked = 0;
  crowd.for_each_touching((*plan)->extent(300, 0), senders.begin, senders.end,
                          [&](int rank, const Summary&) {
                            EXPECT_TRUE(senders.contains(rank));
                            ++asked;
                          });
  EXPECT_EQ(asked, senders.end - senders.begin);
}

TEST(StaticSegmentation, EveryRankBringsAsManyBytesInEachCycle) {
  const Dealt d(6, 1000, 50);
  const auto plan = d.place("static_segmentation", {2, 24576});
  ASSERT_TRUE(plan);
  ASSERT_EQ((*plan)->cycles(), 7) << "50000 bytes in segments of 8192";
  for (int rank = 0; rank < 6; ++rank)
    for (int c = 0; c < 7; ++c)
      EXPECT_EQ(d.part(**plan, rank, rank / 3, c),
                (StreamRange{c * 8192, std::min<int64_t>(50000, (c + 1) * 8192)}));
  EXPECT_EQ((*plan)->page_bytes(), 24576);
}

TEST(Segmentation, BuffersGrowWithLargeGroupsUnlessTheirSizeIsGiven) {
  const std::vector<Summary> all(64, Summary{0, 256 * kMiB, 256 * kMiB});
  const auto buffer = [&](int writers, int64_t cycle) {
    const auto plan = find_algorithm("static_segmentation")
                          ->place({writers, cycle}, {64, 1, 64}, Crowd::from(all), {});
    return (*plan)->page_bytes();
  };
  EXPECT_EQ(buffer(1, 0), 64 * kMiB);
  EXPECT_EQ(buffer(8, 0), 16 * kMiB);
  EXPECT_EQ(buffer(1, 8 * kMiB), 8 * kMiB);
}

TEST(Segmentation, MoreWritersThanRanksAreAllRanksAndFewerThanNoneAreRefused) {
  const Dealt d(3, 512, 4);
  for (const char* name : {"dynamic_segmentation", "static_segmentation"}) {
    EXPECT_EQ((*d.place(name, {64, 4096}))->writers(), 3);
    const auto refused = d.place(name, {-1, 4096});
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message().find("writers must be at least 1"), std::string::npos);
  }
}

}  // namespace
}  // namespace penstock::plan::segmentation_test
