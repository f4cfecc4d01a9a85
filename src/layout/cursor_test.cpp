// Cursors: how long their runs are. That the runs are right is checked on random
// types in decode_test.cpp.
#include "layout/cursor.hpp"

#include <gtest/gtest.h>

#include "layout/file_view.hpp"

namespace penstock::layout::cursor_test {
namespace {

void expect_run(const layout::Run& r, Off offset, int64_t block, int64_t count) {
  EXPECT_EQ(r.offset, offset);
  EXPECT_EQ(r.block, block);
  EXPECT_EQ(r.count, count);
}

TEST(Cursor, TiledBlockIsOneRun) {
  const auto tile = LoopTree::resized(LoopTree::bytes(8), 0, 32);
  Cursor c(*tile, 100, Cursor::kForever);
  const layout::Run r = c.next(8'000'000);
  expect_run(r, 100, 8, 1'000'000);
  EXPECT_EQ(r.stride, 32);
}

TEST(Cursor, ContiguousViewIsOneBlockForEver) {
  Cursor c = FileView().cursor();
  c.seek(int64_t{1} << 50);
  expect_run(c.next(int64_t{1} << 40), int64_t{1} << 50, int64_t{1} << 40, 1);
}

TEST(Cursor, TilesThatContinueTheLoopAreOneRun) {
  const auto rows = LoopTree::strided(4, 1, 16, LoopTree::bytes(8));
  Cursor c(*LoopTree::resized(*rows, 0, 64), 0, Cursor::kForever);
  c.seek(8);
  expect_run(c.next(8 * 1000), 16, 8, 1000);
}

TEST(Cursor, BlocksThatTouchAcrossTilesJoin) {
  const LoopTree::Block blocks[] = {{0, 4}, {8, 4}};
  const auto t = LoopTree::indexed(blocks, LoopTree::bytes(1));
  const LoopTree::Field two[] = {{0, 1, *t}, {20, 3, LoopTree::bytes(1)}};
  Cursor c(*LoopTree::resized(*LoopTree::structure(two), 0, 23), 0, Cursor::kForever);
  c.seek(8);
  expect_run(c.next(100), 20, 7, 1);
}

TEST(Cursor, SplitsABlockWhereItMust) {
  Cursor c(*LoopTree::strided(3, 1, 16, LoopTree::bytes(8)), 0, 1);
  expect_run(c.next(3), 0, 3, 1);
  expect_run(c.next(100), 3, 5, 1);
  expect_run(c.next(15), 16, 8, 1);
  expect_run(c.next(15), 32, 8, 1);
  EXPECT_EQ(c.position(), 24);
}

TEST(Cursor, OutlivesTheTreeAndCopies) {
  auto c = std::make_unique<Cursor>(*LoopTree::strided(3, 1, 16, LoopTree::bytes(8)), 0, 1);
  c->next(8);
  Cursor copy = *c;
  c.reset();
  expect_run(copy.next(100), 16, 8, 2);
}

TEST(Cursor, DeepTreesWalkToo) {
  LoopTree t = LoopTree::bytes(1);
  for (int i = 0; i < 40; ++i) {
    const LoopTree::Field fields[] = {{0, 1, t}, {t.true_ub() + 5, 1, LoopTree::bytes(1)}};
    t = *LoopTree::structure(fields);
  }
  ASSERT_GT(t.depth(), 16);
  Cursor c(t, 0, 2);
  c.seek(t.size() - 1);
  expect_run(c.next(1), t.true_ub() - 1, 1, 1);
  expect_run(c.next(1), t.extent(), 1, 1);
}

}  // namespace
}  // namespace penstock::layout::cursor_test
