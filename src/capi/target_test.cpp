// Where a call's bytes go: views against lists of offsets made by plain arithmetic.
#include "capi/target.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace penstock::capi::target_test {
namespace {

// Every file offset of a target's bytes, in memory's order.
std::vector<int64_t> offsets(const Target& t) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < t.bytes; ++i) all.push_back(t.view.offset_of(t.position_bytes + i));
  return all;
}

std::string refusal(const Result<Target>& t) {
  if (t) return "accepted";
  EXPECT_EQ(t.error().error_class, ErrorClass::argument);
  return t.error().detail;
}

RC_GTEST_PROP(Targets, StridedBlocksLieWhereArithmeticPutsThem, ()) {
  const auto block = *rc::gen::inRange<int64_t>(0, 40), gap = *rc::gen::inRange<int64_t>(0, 40),
             count = *rc::gen::inRange<int64_t>(0, 20), offset = *rc::gen::inRange<int64_t>(0, 999);
  std::vector<int64_t> expected;
  for (int64_t i = 0; i < count; ++i)
    for (int64_t b = 0; b < block; ++b) expected.push_back(offset + i * (block + gap) + b);
  const auto target = strided_target(offset, block, block + gap, count);
  RC_ASSERT(target.has_value());
  RC_ASSERT(target->view.is_monotone());
  RC_ASSERT(offsets(*target) == expected);
}

RC_GTEST_PROP(Targets, ExtentsLieWhereTheySay, ()) {
  std::vector<penstock_extent> extents;
  std::vector<int64_t> expected;
  int64_t at = *rc::gen::inRange<int64_t>(0, 1000);
  const auto count = *rc::gen::inRange(0, 30);
  for (int i = 0; i < count; ++i) {
    const auto gap = *rc::gen::inRange<int64_t>(0, 9), bytes = *rc::gen::inRange<int64_t>(0, 9);
    extents.push_back({at + gap, bytes});
    for (int64_t b = 0; b < bytes; ++b) expected.push_back(at + gap + b);
    at += gap + bytes;
  }
  const auto target = extents_target(extents.data(), count);
  RC_ASSERT(target.has_value());
  RC_ASSERT(target->view.is_monotone());
  RC_ASSERT(offsets(*target) == expected);
}

// So that a pattern that moves on is described to the writers once.
TEST(Targets, EqualPatternsElsewhereHaveEqualFiletypes) {
  const auto a = strided_target(100, 8, 64, 10), b = strided_target(7777, 8, 64, 99);
  EXPECT_EQ(a->view.hash(), b->view.hash());
  const penstock_extent here[] = {{10, 5}, {20, 1}}, there[] = {{1010, 5}, {1020, 1}};
  EXPECT_EQ(extents_target(here, 2)->view.hash(), extents_target(there, 2)->view.hash());
}

TEST(Targets, ReachTheLastOffsetThatAFileCanHaveAndNotBeyond) {
  EXPECT_EQ(refusal(contiguous_target(INT64_MAX - 5, 5)), "accepted");
  EXPECT_NE(refusal(contiguous_target(INT64_MAX - 5, 6)), "accepted");
  EXPECT_EQ(refusal(strided_target(INT64_MAX - 25, 5, 20, 2)), "accepted");
  EXPECT_NE(refusal(strided_target(INT64_MAX - 25, 6, 20, 2)), "accepted");
  EXPECT_NE(refusal(strided_target(0, 1, INT64_MAX, 3)), "accepted");
  const penstock_extent last{INT64_MAX - 5, 5}, beyond{INT64_MAX - 5, 6};
  EXPECT_EQ(refusal(extents_target(&last, 1)), "accepted");
  EXPECT_NE(refusal(extents_target(&beyond, 1)), "accepted");
}

TEST(Targets, NameTheExtentThatIsWrong) {
  const penstock_extent extents[] = {{0, 10}, {10, 0}, {9, 1}};
  EXPECT_EQ(refusal(extents_target(extents, 2)), "accepted");
  EXPECT_EQ(refusal(extents_target(extents, 3)),
            "extents[2].offset_bytes must be at least 10, where the extent before it ends, got 9");
}

}  // namespace
}  // namespace penstock::capi::target_test
