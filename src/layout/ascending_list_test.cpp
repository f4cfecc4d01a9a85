// Ascending blocks of plain bytes: what the builders make of the same numbers is the oracle.
#include "layout/ascending_list.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "layout/indexed.hpp"
#include "layout/loop_tree.hpp"

namespace penstock::layout::ascending_list_test {
namespace {

using Blocks = std::vector<IndexedBlock>;

// Mostly ascending with gaps, so that each rule is broken now and then: blocks that touch, overlap,
// are empty, go back, are all alike or equally far apart.
Blocks any_blocks(std::mt19937& random) {
  const int64_t alike = random() % 3 == 0 ? 1 + random() % 4 : 0;
  const int64_t apart = random() % 5 == 0 ? 6 + random() % 4 : 0;
  const int64_t unit = 1 + random() % 3;
  const bool is_rough = random() % 2 == 0;
  Blocks blocks;
  int64_t at = int64_t(random() % 9) - 4;
  for (size_t n = random() % 7; n > 0; --n) {
    const int64_t count = alike > 0 ? alike : int64_t(1 + random() % 5);
    const bool is_empty = is_rough && random() % 12 == 0;
    blocks.push_back({at * unit, is_empty ? 0 : count * unit});
    at += apart > 0 ? apart : count + int64_t(random() % 4);
    if (is_rough && random() % 10 == 0) at -= 2;
  }
  return blocks;
}

LoopTree any_child(std::mt19937& random) {
  const LoopTree bytes = LoopTree::bytes(1 + random() % 3);
  if (random() % 4 == 0) return *LoopTree::resized(bytes, random() % 2, 4);
  return bytes;
}

TEST(AscendingList, IsWhatTheBuildersMake) {
  std::mt19937 random(20261126);
  int ascending = 0;
  for (int i = 0; i < 200'000; ++i) {
    const Blocks blocks = any_blocks(random);
    const LoopTree child = any_child(random);
    const auto at = [&](size_t k) { return blocks[k]; };
    const auto quick = ascending_indexed(blocks.size(), at, child);
    if (!quick) continue;
    ++ascending;
    const auto built = build_indexed(blocks.size(), at, child);
    ASSERT_TRUE(built) << i;
    ASSERT_EQ(*quick, *built) << i;
    ASSERT_EQ(quick->size(), built->size()) << i;
    ASSERT_EQ(quick->blocks(), built->blocks()) << i;
    ASSERT_EQ(quick->granule(), built->granule()) << i;
    ASSERT_EQ(quick->true_ub(), built->true_ub()) << i;
    ASSERT_EQ(quick->is_monotone(2), built->is_monotone(2)) << i;
  }
  EXPECT_GT(ascending, 20'000);
}

std::optional<LoopTree> ascending(const Blocks& blocks, const LoopTree& child) {
  return ascending_indexed(
      blocks.size(), [&](size_t k) { return blocks[k]; }, child);
}

TEST(AscendingList, IsNoneOfWhatTheBuildersMakeOtherwise) {
  const LoopTree byte = LoopTree::bytes(1);
  EXPECT_TRUE(ascending({{-8, 4}, {0, 8}, {12, 4}}, byte));
  EXPECT_TRUE(ascending({{0, 4}, {4, 8}, {16, 4}}, byte)) << "two that touch are one";
  EXPECT_FALSE(ascending({{0, 4}, {4, 8}}, byte)) << "so it is no list";
  EXPECT_FALSE(ascending({{0, 4}, {8, 8}, {12, 4}}, byte)) << "two that lie across each other";
  EXPECT_FALSE(ascending({{0, 4}, {8, 0}, {16, 4}}, byte)) << "an empty one is none";
  EXPECT_FALSE(ascending({{0, 4}, {8, -1}, {16, 4}}, byte)) << "no count";
  EXPECT_FALSE(ascending({{16, 4}, {0, 8}}, byte)) << "descending";
  EXPECT_FALSE(ascending({{0, 4}, {8, 4}, {16, 4}}, byte)) << "a loop";
  EXPECT_FALSE(ascending({{0, 4}}, byte)) << "one block";
  EXPECT_FALSE(ascending({}, byte));
}

TEST(AscendingList, WhosePlacesTake32BitsIsMade) {
  const Wide far = UINT32_MAX;
  EXPECT_TRUE(ascending({{0, 4}, {far - 4, 2}, {far - 1, 1}}, LoopTree::bytes(1)));
  EXPECT_FALSE(ascending({{0, 4}, {far - 4, 2}, {far - 1, 2}}, LoopTree::bytes(1)));
  EXPECT_TRUE(ascending({{0, 4}, {8 * (far - 40), 2}, {8 * (far - 1), 1}}, LoopTree::bytes(8)));
}

TEST(AscendingList, ThatGoesBeyond64BitsIsForTheBuilders) {
  const Wide far = INT64_MAX;
  EXPECT_FALSE(ascending({{0, 4}, {8, 1}, {far - 1, 2}}, LoopTree::bytes(1)));
  EXPECT_FALSE(ascending({{0, 4}, {8, 1}, {far + 1, 2}}, LoopTree::bytes(1)));
  EXPECT_FALSE(ascending({{-far, 4}, {0, 1}, {far - 8, 2}}, LoopTree::bytes(1))) << "its span";
  EXPECT_FALSE(ascending({{0, 4}, {8, int64_t{1} << 62}}, LoopTree::bytes(8)));
}

}  // namespace
}  // namespace penstock::layout::ascending_list_test
