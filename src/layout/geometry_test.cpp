// The unit of cuts.
#include "layout/geometry.hpp"

#include <gtest/gtest.h>

namespace penstock::layout::geometry_test {
namespace {

Geometry geometry(int64_t page, int64_t block, int64_t stripe) {
  return {.page_bytes = page, .block_bytes = block, .stripe_bytes = stripe};
}

TEST(Geometry, UnitIsSharedByPageAndBlock) {
  EXPECT_EQ(geometry(4096, 4096, 0).unit(), 4096);
  EXPECT_EQ(geometry(4096, 512, 0).unit(), 4096);
  EXPECT_EQ(geometry(4096, 131072, 0).unit(), 131072);
  EXPECT_EQ(geometry(4096, 6144, 0).unit(), 12288);
}

TEST(Geometry, StripeIsTheUnitInWholePages) {
  EXPECT_EQ(geometry(4096, 4096, 1 << 20).unit(), 1 << 20);
  EXPECT_EQ(geometry(4096, 4096, 5000).unit(), 8192);
}

TEST(Geometry, MissingSizesLeaveAUsableUnit) { EXPECT_EQ(geometry(0, 0, 0).unit(), 1); }

}  // namespace
}  // namespace penstock::layout::geometry_test
