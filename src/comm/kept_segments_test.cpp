// What of shared memory is kept for the next file, and what is given back.
#include "comm/kept_segments.hpp"

#include <gtest/gtest.h>

namespace penstock::comm::kept_segments_test {
namespace {

// So many bytes of which all are populated.
class Bytes final : public SharedSegment {
 public:
  explicit Bytes(size_t bytes)
      : SharedSegment(std::span(static_cast<std::byte*>(nullptr), bytes)) {}
};

std::shared_ptr<SharedSegment> of(size_t bytes) { return std::make_shared<Bytes>(bytes); }

SegmentShape asks(size_t bytes) { return {.bytes = bytes}; }

TEST(KeptSegments, TheSmallestThatIsLargeEnoughAndThatNobodyHas) {
  KeptSegments kept;
  EXPECT_FALSE(kept.has_had_any());
  EXPECT_EQ(kept.find(asks(1)), -1);
  for (const size_t bytes : {300, 100, 200}) kept.add(of(bytes), 1);
  EXPECT_TRUE(kept.has_had_any());
  EXPECT_EQ(kept.find(asks(300)), 0);
  EXPECT_EQ(kept.find(asks(100)), 1);
  EXPECT_EQ(kept.find(asks(101)), 2);
  EXPECT_EQ(kept.find(asks(301)), -1);
  const auto user = kept.at(1);
  EXPECT_EQ(kept.find(asks(100)), 2) << "the other one is in use";
}

TEST(KeptSegments, WhatIsInUseIsNotDroppedAndNotKept) {
  KeptSegments kept;
  for (int i = 0; i < 2; ++i) kept.add(of(100), 1);
  const std::weak_ptr<SharedSegment> idle = kept.at(0);
  const auto user = kept.at(1);
  kept.drop_idle();
  EXPECT_TRUE(idle.expired());
  EXPECT_EQ(user.use_count(), 2);
  kept.rest();
  EXPECT_EQ(user.use_count(), 1) << "when no file uses the communicator, whose it was";
}

TEST(KeptSegments, RestWithinTheBoundOfTheirRanks) {
  constexpr size_t kMost = KeptSegments::kMostBytesPerRank;
  if (free_for_segments() / KeptSegments::kMostOfFree < 2 * kMost)
    GTEST_SKIP() << "shared memory is short here";
  KeptSegments kept;
  for (const size_t bytes : {kMost, kMost + 1, kMost - 1, size_t{1}, size_t{1}})
    kept.add(of(bytes), 2);
  kept.rest();
  EXPECT_EQ(kept.find(asks(kMost)), 0);
  EXPECT_EQ(kept.find(asks(kMost + 1)), -1) << "the first leaves no room for it";
  EXPECT_EQ(kept.find(asks(kMost - 1)), 2);
  EXPECT_EQ(kept.find(asks(1)), 3) << "one of the two, which fills what is left";
  kept.rest();
  EXPECT_EQ(kept.find(asks(1)), 3) << "they stay";
}

TEST(KeptSegments, RanksThatGaveBackDifferentOnesNameNoTwoAlike) {
  KeptSegments rank, other;
  for (KeptSegments* each : {&rank, &other}) {
    each->add(of(100), 2);
    each->add(of(100), 2);
  }
  auto other_handle = rank.at(0);
  const SharedSegment* const second = rank.at(1).get();
  rank.rest();
  other.rest();
  EXPECT_EQ(other.find(asks(100)), 0);
  EXPECT_EQ(rank.find(asks(100)), 1) << "not the first of those that are left";
  EXPECT_EQ(rank.at(1).get(), second);
  other_handle = nullptr;
  EXPECT_EQ(rank.find(asks(100)), 1) << "what was given back is not taken again";
  for (KeptSegments* each : {&rank, &other}) {
    each->drop_idle();
    each->add(of(100), 2);
    EXPECT_EQ(each->find(asks(100)), 2) << "a number is never another's";
  }
}

}  // namespace
}  // namespace penstock::comm::kept_segments_test
