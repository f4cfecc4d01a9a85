// Loop trees: normal form, bounds by MPI's rules, limits, and the wire.
#include "layout/loop_tree.hpp"

#include <gtest/gtest.h>

#include "layout/cursor.hpp"
#include "layout/node.hpp"
#include "layout/wire.hpp"

namespace penstock::layout::loop_tree_test {
namespace {

using Block = LoopTree::Block;
using Field = LoopTree::Field;

LoopTree strided(int64_t count, int64_t block, Off stride, const LoopTree& child) {
  return *LoopTree::strided(count, block, stride, child);
}

TEST(LoopTree, BytesAreContiguous) {
  const LoopTree t = LoopTree::bytes(7);
  EXPECT_TRUE(t.is_contiguous());
  EXPECT_EQ(t.size(), 7);
  EXPECT_EQ(t.extent(), 7);
  EXPECT_EQ(LoopTree::bytes(0).body(), nullptr);
  EXPECT_FALSE(LoopTree::bytes(0).is_contiguous());
}

TEST(LoopTree, AdjacentBlocksJoin) {
  EXPECT_EQ(strided(10, 2, 16, LoopTree::bytes(8)), LoopTree::bytes(160));
  const Block blocks[] = {{0, 3}, {3, 4}, {7, 1}};
  EXPECT_EQ(*LoopTree::indexed(blocks, LoopTree::bytes(1)), LoopTree::bytes(8));
}

TEST(LoopTree, LoopsThatContinueEachOtherBecomeOne) {
  const LoopTree rows = strided(4, 1, 16, LoopTree::bytes(8));
  const LoopTree nested = strided(100, 1, 64, rows);
  EXPECT_EQ(nested.depth(), 2);
  EXPECT_EQ(nested, strided(400, 1, 16, LoopTree::bytes(8)));
}

TEST(LoopTree, DescendingLoopsThatContinueEachOtherBecomeOne) {
  const LoopTree down = strided(4, 1, -16, LoopTree::bytes(8));
  EXPECT_EQ(strided(5, 1, -64, down), strided(20, 1, -16, LoopTree::bytes(8)));
  EXPECT_EQ(down.true_lb(), -48);
  EXPECT_EQ(down.lb(), -48);
  EXPECT_FALSE(down.is_monotone(1));
}

TEST(LoopTree, StructureBoundsIgnoreEmptyFields) {
  const Field fields[] = {
      {-100, 0, LoopTree::bytes(4)}, {8, 1, LoopTree::bytes(4)}, {500, 1, LoopTree::bytes(0)}};
  const auto t = LoopTree::structure(fields);
  EXPECT_EQ(t->lb(), 8);
  EXPECT_EQ(t->extent(), 4);
}

TEST(LoopTree, NegativeExtentPlacesCopiesDownwards) {
  const auto backwards = LoopTree::resized(LoopTree::bytes(4), 0, -8);
  const auto t = LoopTree::contiguous(3, *backwards);
  EXPECT_EQ(t->true_lb(), -16);
  EXPECT_EQ(t->true_ub(), 4);
  EXPECT_EQ(t->lb(), -16);  // bounds are the least lb and the greatest ub of the copies
  EXPECT_EQ(t->extent(), 8);
}

TEST(LoopTree, OverflowIsAnArgumentError) {
  const LoopTree big = LoopTree::bytes(INT64_MAX / 2);
  const auto class_of = [](const Result<LoopTree>& t) { return t.error().error_class; };
  EXPECT_EQ(class_of(LoopTree::contiguous(3, big)), ErrorClass::argument);
  EXPECT_EQ(class_of(LoopTree::strided(2, 1, INT64_MAX, big)), ErrorClass::argument);
  EXPECT_EQ(class_of(LoopTree::strided(2, 1, INT64_MIN, LoopTree::bytes(1))), ErrorClass::argument);
  EXPECT_EQ(class_of(LoopTree::resized(big, INT64_MAX, 1)), ErrorClass::argument);
  EXPECT_EQ(class_of(LoopTree::contiguous(-1, big)), ErrorClass::argument);
  const Block far[] = {{INT64_MIN, 1}, {INT64_MAX - 1, 1}};
  EXPECT_EQ(class_of(LoopTree::indexed(far, LoopTree::bytes(1))), ErrorClass::argument);
}

TEST(LoopTree, IndexedOfManyLengthsCostsItsDescription) {
  std::vector<Block> blocks;
  for (int64_t i = 0; i < 100'000; ++i) blocks.push_back({i * 50 + i % 7, 1 + i % 13});
  const auto t = LoopTree::indexed(blocks, LoopTree::bytes(1));
  EXPECT_LT(t->memory_bytes(), blocks.size() * sizeof(Block) + 4096);
}

// Blocks whose distances differ, each of whose offsets `unit` divides.
std::vector<Block> irregular(int64_t n, int64_t unit, int64_t lengths) {
  std::vector<Block> blocks;
  for (int64_t i = 0; i < n; ++i) blocks.push_back({(i * 40 + i % 7) * unit, 1 + i % lengths});
  return blocks;
}

TEST(LoopTree, IrregularBlocksOfOneLengthCostFourBytesEach) {
  const auto t = LoopTree::indexed(irregular(100'000, 8, 1), LoopTree::bytes(8));
  ASSERT_TRUE(t);
  EXPECT_LT(t->memory_bytes(), 4u * 100'000 + 1024);
  EXPECT_EQ(t->serialised_bytes() / 1024, 4 * 100'000 / 1024);
  EXPECT_EQ(t->blocks(), 100'000);
}

TEST(LoopTree, IrregularBlocksOfManyLengthsCostEightBytesEach) {
  const auto t = LoopTree::indexed(irregular(100'000, 8, 3), LoopTree::bytes(8));
  ASSERT_TRUE(t);
  EXPECT_LT(t->memory_bytes(), 8u * 100'000 + 1024);
}

// As one field of an array of records, in runs.
TEST(LoopTree, IrregularRunsOfAnElementWithGapsShareTheirNodes) {
  const LoopTree field = LoopTree::resized(LoopTree::bytes(8), 0, 64).value();
  const auto t = LoopTree::indexed(irregular(100'000, 8, 3), field);
  ASSERT_TRUE(t);
  EXPECT_LT(t->memory_bytes(), 40u * 100'000);
  EXPECT_EQ(t->blocks(), 199'999);
}

TEST(LoopTree, CopiesOfOneNodeCostFourBytesEach) {
  const LoopTree pair = strided(2, 1, 16, LoopTree::bytes(8));
  const auto t = LoopTree::indexed(irregular(100'000, 32, 1), pair);
  ASSERT_TRUE(t);
  EXPECT_LT(t->memory_bytes(), 4u * 100'000 + 1024);
  EXPECT_EQ(t->blocks(), 200'000);
}

// Few blocks, so far apart that no unit lets them fit four bytes; and the last that fit.
TEST(LoopTree, OffsetsOfAnySizeAreKept) {
  for (const Off reach : {Off{UINT32_MAX}, Off{UINT32_MAX} + 1, Off{1} << 50}) {
    for (const int64_t unit : {1, 3, 4096}) {
      const Block far[] = {{0, 1}, {5 * unit, 2}, {reach * unit, 1}};
      const auto t = LoopTree::indexed(far, LoopTree::bytes(unit));
      ASSERT_TRUE(t);
      Cursor cursor(*t, 0, 1);
      cursor.seek(3 * unit);
      EXPECT_EQ(cursor.next(INT64_MAX).offset, reach * unit);
      std::vector<std::byte> wire;
      t->serialise(wire);
      EXPECT_EQ(int64_t(wire.size()), t->serialised_bytes());
      const auto back = LoopTree::deserialise(wire);
      ASSERT_TRUE(back) << back.error().message();
      EXPECT_EQ(*back, *t);
    }
  }
}

TEST(LoopTree, ListsThatOverflowAreArgumentErrors) {
  const auto class_of = [](const Result<LoopTree>& t) { return t.error().error_class; };
  const LoopTree byte = LoopTree::bytes(1);
  const Block one_behind_another[] = {{INT64_MIN, INT64_MAX}, {-1, INT64_MAX}};
  EXPECT_EQ(class_of(LoopTree::indexed(one_behind_another, byte)), ErrorClass::argument);
  const Block past_the_end[] = {{0, 1}, {INT64_MAX - 1, 5}};
  EXPECT_EQ(class_of(LoopTree::indexed(past_the_end, byte)), ErrorClass::argument);
  const Block copies[] = {{0, 1}, {7, 1}, {INT64_MAX - 2, 1}};
  EXPECT_EQ(class_of(LoopTree::indexed(copies, strided(2, 1, 4, byte))), ErrorClass::argument);
}

TEST(OffsetList, FindsWhatIsGreater) {
  for (const int64_t unit : {int64_t{8}, int64_t{1} << 40}) {
    OffsetList list(3, 8, 3 * unit);
    for (int64_t i = 1; i <= 3; ++i) list.push_back(i * unit);
    EXPECT_EQ(list.narrow(), unit == 8);
    EXPECT_EQ(list.upper_bound(0), 0);
    EXPECT_EQ(list.upper_bound(unit - 1), 0);
    EXPECT_EQ(list.upper_bound(unit), 1);
    EXPECT_EQ(list.upper_bound(2 * unit + 1), 2);
    EXPECT_EQ(list.upper_bound(INT64_MAX), 3);
  }
}

TEST(LoopTree, SharedNodesTravelOnce) {
  // Each level uses the one below twice, in different counts: a tree would have 2^24 leaves.
  LoopTree t = LoopTree::bytes(1);
  for (int i = 0; i < 24; ++i) {
    const Field twice[] = {{0, 1, t},
                           {t.extent() + 3, 1, *LoopTree::resized(t, 0, t.extent() + 1)},
                           {3 * t.extent() + 10, 2, *LoopTree::resized(t, 0, t.extent() + 1)}};
    auto next = LoopTree::structure(twice);
    if (!next) break;
    t = *next;
  }
  ASSERT_GT(t.depth(), 20);
  std::vector<std::byte> wire;
  t.serialise(wire);
  EXPECT_LT(wire.size(), 16'384u);
  const auto back = LoopTree::deserialise(wire);
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(*back, t);
}

// Whichever constructor made them: one shares the nodes of equal blocks, the other has them twice.
TEST(LoopTree, EqualTreesHaveEqualDescriptions) {
  const LoopTree e = *LoopTree::resized(LoopTree::bytes(4), 0, 8);
  const Field fields[] = {{0, 2, e}, {24, 2, e}, {56, 3, e}};
  const Block blocks[] = {{0, 2}, {24, 2}, {56, 3}};
  const auto a = LoopTree::structure(fields), b = LoopTree::indexed(blocks, e);
  ASSERT_TRUE(a && b);
  ASSERT_EQ(*a, *b);
  std::vector<std::byte> of_a, of_b;
  a->serialise(of_a);
  b->serialise(of_b);
  EXPECT_EQ(of_a, of_b);
  EXPECT_EQ(a->serialised_bytes(), b->serialised_bytes());
}

TEST(LoopTree, EveryTruncationIsRefused) {
  const Block blocks[] = {{0, 3}, {10, 4}, {99, 1}};
  const auto t = LoopTree::strided(9, 2, 1000, *LoopTree::indexed(blocks, LoopTree::bytes(2)));
  std::vector<std::byte> wire;
  t->serialise(wire);
  for (size_t n = 0; n < wire.size(); ++n) {
    const auto cut = LoopTree::deserialise(std::span(wire).first(n));
    ASSERT_FALSE(cut) << n << " of " << wire.size() << " bytes";
    EXPECT_EQ(cut.error().error_class, ErrorClass::argument);
  }
  EXPECT_TRUE(LoopTree::deserialise(wire));
}

TEST(LoopTree, HugeCountsOnTheWireAllocateNothing) {
  for (const NodeKind kind : {NodeKind::blocks, NodeKind::segments, NodeKind::sequence}) {
    for (const int64_t count : {int64_t{1} << 40, INT64_MAX, INT64_MAX - 1}) {
      for (const int64_t form : {0, 16, 16 + 32}) {  // lists of words, and of halves
        std::vector<std::byte> wire;
        LoopTree::bytes(0).serialise(wire);
        wire.resize(wire.size() - sizeof(int64_t));  // the number of nodes
        WireWriter w(wire);
        for (const int64_t word : {int64_t{1}, int64_t(kind) | form, count, int64_t{8}, int64_t{0}})
          w.put(word);
        EXPECT_FALSE(LoopTree::deserialise(wire));
      }
    }
  }
}

TEST(LoopTree, GranuleDividesDisplacementsAndLengths) {
  EXPECT_EQ(strided(10, 1, 24, LoopTree::bytes(16)).granule(), 8);
  EXPECT_EQ(LoopTree::bytes(12).granule(), 12);
  EXPECT_EQ(LoopTree::bytes(0).granule(), 0);
  const Block shifted[] = {{6, 1}};
  EXPECT_EQ(LoopTree::indexed(shifted, LoopTree::bytes(4))->granule(), 2);
}

}  // namespace
}  // namespace penstock::layout::loop_tree_test
