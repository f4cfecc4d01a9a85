#include "base/extent.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/aligned_buffer.hpp"

namespace penstock::extent_test {
namespace {

TEST(Extent, TouchingRangesDoNotOverlap) {
  EXPECT_FALSE((Extent{0, 4}.overlaps({4, 8})));
  EXPECT_TRUE((Extent{0, 5}.overlaps({4, 8})));
  EXPECT_FALSE((Extent{0, 5}.overlaps({3, 3})));
}

TEST(Extent, EndsWhereOffsetsEnd) {
  EXPECT_EQ(Extent::of(10, 5), (Extent{10, 15}));
  EXPECT_EQ(Extent::of(kLastOff - 10, 50), (Extent{kLastOff - 10, kLastOff}));
  EXPECT_EQ(capped_sum(kLastOff - 1, 1), kLastOff);
  EXPECT_EQ(capped_product(kLastOff / 2, 3), kLastOff);
  EXPECT_EQ(capped_product(6, 7), 42);
  EXPECT_EQ(align_up(kLastOff - 1, 4096), kLastOff);
  EXPECT_EQ(divide_up(kLastOff, 4096), kLastOff / 4096 + 1);
}

RC_GTEST_PROP(Extent, AByteIsInTheIntersectionIffInBoth, ()) {
  const auto edge = rc::gen::inRange<Off>(0, 20);
  const Extent a{*edge, *edge}, b{*edge, *edge};
  const Extent both = a.intersect(b);
  for (Off x = 0; x < 20; ++x) RC_ASSERT(both.contains(x) == (a.contains(x) && b.contains(x)));
}

RC_GTEST_PROP(Extent, AlignmentIsTheNearestMultipleOnItsSide, ()) {
  const Off unit = *rc::gen::inRange<Off>(1, 5000), x = *rc::gen::inRange<Off>(0, 1 << 30);
  RC_ASSERT(align_down(x, unit) <= x && x - align_down(x, unit) < unit);
  RC_ASSERT(align_up(x, unit) >= x && align_up(x, unit) - x < unit);
  RC_ASSERT(align_up(x, unit) % unit == 0 && align_down(x, unit) % unit == 0);
  RC_ASSERT(divide_up(x, unit) * unit == align_up(x, unit));
}

TEST(AlignedBuffer, IsAlignedAndNeverShrinks) {
  AlignedBuffer b;
  ASSERT_TRUE(b.reserve(5000));
  const std::byte* first = b.data();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % AlignedBuffer::kAlignment, 0u);
  EXPECT_GE(b.size(), 5000u);
  ASSERT_TRUE(b.reserve(1));
  EXPECT_EQ(b.data(), first);
}

}  // namespace
}  // namespace penstock::extent_test
