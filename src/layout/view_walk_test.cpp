// The walk in pieces, by a cursor that seeks each of them.
#include "layout/view_walk.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace penstock::layout::view_walk_test {
namespace {

constexpr int64_t kPiece = 12;

void expect_as_by_cursor(const FileView& view, std::initializer_list<int64_t> positions) {
  ViewWalk walk(view);
  for (const int64_t position : positions) {
    Cursor cursor = view.cursor();
    cursor.seek(position);
    const Run expected = cursor.next(kPiece);
    const Run run = walk.run_at(position, kPiece);
    EXPECT_EQ(run.offset, expected.offset) << position;
    EXPECT_EQ(run.bytes(), expected.bytes()) << position;
    EXPECT_EQ(run.end(), expected.end()) << position;
  }
}

TEST(ViewWalk, FindsPiecesInAnyOrder) {
  const auto positions = {int64_t{0}, int64_t{12}, int64_t{7}, int64_t{1000}, int64_t{999}};
  expect_as_by_cursor(FileView(), positions);
  expect_as_by_cursor(*FileView::make(1000, 8, LoopTree::bytes(8)), positions);
  expect_as_by_cursor(*FileView::make(0, 1, *LoopTree::resized(LoopTree::bytes(4), 0, 10)),
                      positions);
  expect_as_by_cursor(*FileView::make(3, 8, *LoopTree::strided(4, 1, 24, LoopTree::bytes(8))),
                      positions);
}

TEST(ViewWalk, BytesThatBeginBehindTheOriginAreAdjacentToo) {
  const std::array blocks = {LoopTree::Block{5, 8}};
  const auto behind = LoopTree::indexed(blocks, LoopTree::bytes(1));
  ASSERT_TRUE(behind);
  expect_as_by_cursor(*FileView::make(100, 1, *behind), {0, 8, 3, 64});
}

TEST(ViewWalk, WhatEndsBehindTheLastOffsetSaysSo) {
  const auto view = FileView::make(INT64_MAX - 20, 1, LoopTree::bytes(1));
  ViewWalk walk(*view);
  EXPECT_NE(walk.run_at(0, kPiece).end(), kLastOff);
  EXPECT_EQ(walk.run_at(kPiece, kPiece).end(), kLastOff);
  EXPECT_EQ(walk.run_at(INT64_MAX - kPiece, kPiece).end(), kLastOff);
}

}  // namespace
}  // namespace penstock::layout::view_walk_test
