// File views: what is refused, and large views by arithmetic. Random views are
// compared byte by byte in decode_test.cpp.
#include "layout/file_view.hpp"

#include <gtest/gtest.h>

namespace penstock::layout::file_view_test {
namespace {

TEST(FileView, RefusesWhatMpiForbids) {
  const auto class_of = [](const Result<FileView>& v) { return v.error().error_class; };
  EXPECT_EQ(class_of(FileView::make(-1, 1, LoopTree::bytes(1))), ErrorClass::argument);
  EXPECT_EQ(class_of(FileView::make(0, 0, LoopTree::bytes(1))), ErrorClass::argument);
  EXPECT_EQ(class_of(FileView::make(0, 1, LoopTree::bytes(0))), ErrorClass::argument);
  EXPECT_EQ(class_of(FileView::make(0, 8, LoopTree::bytes(12))), ErrorClass::argument);
}

TEST(FileView, PositionAndOffsetAreInverseInABillionBlocks) {
  const auto type = LoopTree::strided(int64_t{1} << 30, 1, 24, LoopTree::bytes(8));
  const auto v = FileView::make(1000, 8, *type);
  ASSERT_TRUE(v->is_monotone());
  for (const int64_t block : {int64_t{0}, int64_t{123'456'789}, int64_t{1} << 29}) {
    EXPECT_EQ(v->offset_of(block * 8 + 5), 1000 + block * 24 + 5);
    EXPECT_EQ(v->position_at(1000 + block * 24 + 5), block * 8 + 5);
    EXPECT_EQ(v->position_at(1000 + block * 24 + 20), block * 8 + 8);  // in a hole
  }
}

TEST(FileView, ClipGivesExactlyTheBytesInside) {
  const auto v = FileView::make(0, 1, *LoopTree::resized(LoopTree::bytes(4), 0, 10));
  EXPECT_EQ(v->clip({0, 100}, {12, 21}), (StreamRange{6, 9}));
  EXPECT_EQ(v->clip({7, 8}, {0, 1000}), (StreamRange{7, 8}));
  EXPECT_TRUE(v->clip({0, 100}, {14, 20}).empty());
  EXPECT_TRUE(v->clip({0, 100}, {20, 20}).empty());
  EXPECT_EQ(v->extent_of({6, 9}), (Extent{12, 21}));
  EXPECT_TRUE(v->extent_of({6, 6}).empty());
}

TEST(FileView, TilesThatOverlapAreNotMonotone) {
  EXPECT_FALSE(FileView::make(0, 1, *LoopTree::resized(LoopTree::bytes(4), 0, 3))->is_monotone());
  EXPECT_FALSE(FileView::make(0, 1, *LoopTree::resized(LoopTree::bytes(4), 0, -8))->is_monotone());
  EXPECT_TRUE(FileView::make(0, 1, *LoopTree::resized(LoopTree::bytes(4), 0, 4))->is_monotone());
}

TEST(FileView, OffsetsBeyondTheFileSaturate) {
  const auto v = FileView::make(0, 1, *LoopTree::resized(LoopTree::bytes(1), 0, int64_t{1} << 40));
  EXPECT_EQ(v->offset_of(int64_t{1} << 40), INT64_MAX);
  EXPECT_EQ(v->position_at(INT64_MAX), int64_t{1} << 23);
}

TEST(FileView, GranuleDividesEveryOffset) {
  const auto t = LoopTree::resized(*LoopTree::strided(4, 1, 32, LoopTree::bytes(16)), 0, 256);
  EXPECT_EQ(FileView::make(0, 1, *t)->granule(), 16);
  EXPECT_EQ(FileView::make(24, 1, *t)->granule(), 8);
  EXPECT_EQ(FileView().granule(), 1);
}

TEST(FileView, HashIgnoresTheDisplacementOnly) {
  const auto a = FileView::make(0, 4, LoopTree::bytes(8));
  const auto b = FileView::make(64, 4, LoopTree::bytes(8));
  const auto c = FileView::make(0, 8, LoopTree::bytes(8));
  EXPECT_EQ(a->hash(), b->hash());
  EXPECT_NE(a->hash(), c->hash());
}

TEST(FileView, ReturnsFromTheWireAsItWas) {
  const auto v =
      FileView::make(48, 8, *LoopTree::strided(int64_t{1} << 20, 2, 64, LoopTree::bytes(8)));
  std::vector<std::byte> wire;
  v->serialise(wire);
  EXPECT_LT(wire.size(), 256u);
  const auto back = FileView::deserialise(wire);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->displacement(), 48);
  EXPECT_EQ(back->etype_bytes(), 8);
  EXPECT_EQ(back->hash(), v->hash());
  EXPECT_TRUE(back->is_monotone());
  EXPECT_FALSE(FileView::deserialise(std::span(wire).first(12)));
}

}  // namespace
}  // namespace penstock::layout::file_view_test
