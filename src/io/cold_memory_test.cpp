// When writes go past the page cache, by what they cost.
#include "io/cold_memory.hpp"

#include <gtest/gtest.h>

namespace penstock::io::cold_memory_test {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// Nanoseconds for a byte.
struct Cost {
  double wall_ns, processor_ns;
};
constexpr Cost kWarm{0.4, 0.3}, kCold{5, 4}, kWaiting{20, 0.3}, kFastDisk{1, 0.1},
    kSlowDisk{50, 0.1};

class ColdMemoryTest : public ::testing::Test {
 protected:
  // Whatever the way, by writes of 1 MiB.
  void write(int64_t mib, Cost cached, Cost direct) {
    for (int64_t i = 0; i < mib; ++i) {
      const Way way = memory.way();
      const Cost c = way == Way::direct ? direct : cached;
      memory.wrote(way,
                   {kMiB, c.wall_ns * 1e-9 * double(kMiB), c.processor_ns * 1e-9 * double(kMiB)});
      direct_mib += way == Way::direct ? 1 : 0;
    }
  }

  ColdMemory memory{ColdRule{}};
  int64_t direct_mib = 0;
};

TEST_F(ColdMemoryTest, WarmMemoryIsNeverLeft) {
  write(10'000, kWarm, kFastDisk);
  EXPECT_EQ(direct_mib, 0);
}

TEST_F(ColdMemoryTest, WritersThatWaitAreNotInColdMemory) {
  write(1000, kWaiting, kFastDisk);
  EXPECT_EQ(direct_mib, 0);
}

TEST_F(ColdMemoryTest, OneStretchOfColdMemoryIsEnough) {
  write(2, kCold, kFastDisk);
  EXPECT_EQ(memory.way(), Way::direct);
  write(1022, kCold, kFastDisk);
  EXPECT_GE(direct_mib, 1010);
  EXPECT_LT(direct_mib, 1022) << "now and then memory is looked at again";
}

TEST_F(ColdMemoryTest, MemoryThatHasBecomeWarmIsUsedAgain) {
  write(1000, kCold, kFastDisk);
  direct_mib = 0;
  write(2000, kWarm, kFastDisk);
  EXPECT_LE(direct_mib, 520);
  EXPECT_EQ(memory.way(), Way::buffered);
}

TEST_F(ColdMemoryTest, ADiskThatIsSlowerThanColdMemoryIsHardlyTried) {
  write(10'000, kCold, kSlowDisk);
  EXPECT_GT(direct_mib, 0);
  EXPECT_LE(direct_mib, 10) << "the longer the more often it did not pay";
}

TEST_F(ColdMemoryTest, ADiskThatBecomesSlowIsLeft) {
  write(100, kCold, kFastDisk);
  EXPECT_EQ(memory.way(), Way::direct);
  direct_mib = 0;
  write(100, kCold, kSlowDisk);
  EXPECT_LE(direct_mib, 5);
}

TEST_F(ColdMemoryTest, AStallOfTheDiskIsForgiven) {
  write(100, kCold, kFastDisk);
  write(1, kCold, {20, 0.1});
  EXPECT_EQ(memory.way(), Way::direct);
}

TEST_F(ColdMemoryTest, WhatWasBegunBeforeADecisionDoesNotCount) {
  write(2, kCold, kFastDisk);
  ASSERT_EQ(memory.way(), Way::direct);
  memory.wrote(Way::buffered, {100 * kMiB, 10, 10});
  EXPECT_EQ(memory.way(), Way::direct);
}

TEST_F(ColdMemoryTest, WhoGivesUpStaysWithThePageCache) {
  write(2, kCold, kFastDisk);
  memory.give_up();
  direct_mib = 0;
  write(1000, kCold, kFastDisk);
  EXPECT_EQ(direct_mib, 0);
}

TEST_F(ColdMemoryTest, ShortWritesAreNotItsConcern) {
  EXPECT_FALSE(memory.concerns(64 << 10));
  EXPECT_TRUE(memory.concerns(kMiB));
}

}  // namespace
}  // namespace penstock::io::cold_memory_test
