#include "node_memory.h"

#include <gtest/gtest.h>

namespace penstock::measure {
namespace {

constexpr int64_t kHuge = int64_t{2} << 20;

TEST(NodeMemory, EachWorkerWarmsItsShareInHugePages) {
  EXPECT_EQ(warm_node_memory(8 * kHuge, 4, false), 2 * kHuge);
  EXPECT_EQ(warm_node_memory(1, 4, false), kHuge) << "at least one";
  EXPECT_EQ(warm_node_memory(0, 4, false), 0);
}

TEST(NodeMemory, WhatIsWarmIsKeptUntilItIsGivenBack) {
  KeptMemory kept = cool_node_memory(kHuge, true);
  EXPECT_NE(kept.recent, nullptr);
  EXPECT_GT(kept.recent_bytes, 0);
  EXPECT_GE(kept.left_bytes, 0);
  give_back_memory(&kept);
  EXPECT_EQ(kept.recent, nullptr);
  EXPECT_EQ(kept.small_bytes + kept.recent_bytes, 0);
  give_back_memory(&kept);
}

}  // namespace
}  // namespace penstock::measure
