// Coverage: granules, clipping and words at their edges.
#include "layout/coverage.hpp"

#include <gtest/gtest.h>

namespace penstock::layout::coverage_test {
namespace {

std::vector<Extent> extents_of(Coverage& c) {
  const auto e = c.extents();
  return {e.begin(), e.end()};
}

TEST(Coverage, JoinsWhatTouchesAndClipsWhatSticksOut) {
  Coverage c;
  ASSERT_TRUE(c.reset({1024, 2048}, 8));
  c.add(Extent{0, 1032});
  c.add(Extent{1032, 1040});
  c.add(Extent{2040, 4096});
  EXPECT_EQ(extents_of(c), (std::vector<Extent>{{1024, 1040}, {2040, 2048}}));
  EXPECT_FALSE(c.complete());
  c.add(Extent{1040, 2040});
  EXPECT_TRUE(c.complete());
}

TEST(Coverage, BytesNamedTwiceCountOnce) {
  Coverage c;
  ASSERT_TRUE(c.reset({0, 16}, 1));
  c.add(Extent{0, 8});
  c.add(Extent{0, 8});
  EXPECT_FALSE(c.complete());
}

TEST(Coverage, StridedRunsFillEveryGranule) {
  Coverage c;
  ASSERT_TRUE(c.reset({0, 80'000}, 8));
  c.add(layout::Run{0, 8, 16, 5000});
  EXPECT_EQ(c.extents().size(), 5000u);
  c.add(layout::Run{79'992, 8, -16, 5000});
  EXPECT_TRUE(c.complete());
  EXPECT_EQ(extents_of(c), (std::vector<Extent>{{0, 80'000}}));
}

TEST(Coverage, StartsAfresh) {
  Coverage c;
  ASSERT_TRUE(c.reset({0, 4096}, 1));
  c.add(Extent{0, 4096});
  ASSERT_TRUE(c.reset({4096, 8192}, 1));
  EXPECT_TRUE(c.extents().empty());
  ASSERT_TRUE(c.reset({5, 5}, 1));
  EXPECT_TRUE(c.complete());
}

// Of a page of 16 MiB, by the byte.
TEST(Coverage, LooksAtNoMoreThanWhatIsFilledIsNear) {
  constexpr Off kEnd = Off{16} << 20;
  constexpr int64_t kBlock = 4096;  // granules that are looked at together
  Coverage c;
  ASSERT_TRUE(c.reset({0, kEnd}, 1));
  EXPECT_EQ(c.granules_looked_at(), 0);
  c.add(Extent{3, 11});
  c.add(layout::Run{kEnd - 1, 1, -(Off{4} << 20), 3});
  EXPECT_EQ(extents_of(c),
            (std::vector<Extent>{
                {3, 11}, {(8 << 20) - 1, 8 << 20}, {(12 << 20) - 1, 12 << 20}, {kEnd - 1, kEnd}}));
  EXPECT_EQ(c.granules_looked_at(), 4 * kBlock);
  c.add(Extent{kBlock, 3 * kBlock});
  EXPECT_EQ(c.granules_looked_at(), 6 * kBlock);
  ASSERT_TRUE(c.reset({0, kEnd}, 1));
  EXPECT_EQ(c.granules_looked_at(), 0);
  EXPECT_TRUE(c.extents().empty());
}

// Blocks are no boundaries, and what a larger page has left behind is gone.
TEST(Coverage, JoinsAcrossTheBlocksThatAreLookedAt) {
  Coverage c;
  ASSERT_TRUE(c.reset({0, 100'000}, 1));
  c.add(Extent{4000, 99'000});
  EXPECT_EQ(extents_of(c), (std::vector<Extent>{{4000, 99'000}}));
  ASSERT_TRUE(c.reset({0, 5000}, 1));
  c.add(Extent{4095, 4097});
  ASSERT_TRUE(c.reset({0, 100'000}, 1));
  c.add(layout::Run{4095, 1, 1, 2});
  EXPECT_EQ(extents_of(c), (std::vector<Extent>{{4095, 4097}}));
}

TEST(Coverage, RefusesAGranuleThatDoesNotDivide) {
  Coverage c;
  EXPECT_EQ(c.reset({0, 100}, 8).error().error_class, ErrorClass::argument);
  EXPECT_EQ(c.reset({0, 100}, 0).error().error_class, ErrorClass::argument);
}

}  // namespace
}  // namespace penstock::layout::coverage_test
