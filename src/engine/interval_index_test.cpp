#include "engine/interval_index.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace penstock::engine::interval_index_test {
namespace {

std::set<size_t> found(const IntervalIndex& index, Extent e) {
  std::set<size_t> all;
  EXPECT_FALSE(index.any(e, [&](size_t i) {
    EXPECT_TRUE(all.insert(i).second);
    return false;
  }));
  return all;
}

TEST(IntervalIndex, FindsWhatOverlapsAndNothingElse) {
  std::mt19937_64 random(7);
  for (int n = 0; n < 70; ++n) {
    std::vector<Extent> extents;
    for (int i = 0; i < n; ++i) {
      const auto begin = Off(random() % 1000);
      extents.push_back({begin, begin + Off(random() % (i % 5 == 0 ? 500 : 20))});
    }
    const IntervalIndex index(extents);
    for (Off at = 0; at < 1000; at += 37) {
      const Extent e{at, at + Off(random() % 60)};
      std::set<size_t> expected;
      for (size_t i = 0; i < extents.size(); ++i)
        if (extents[i].overlaps(e)) expected.insert(i);
      EXPECT_EQ(found(index, e), expected);
    }
  }
}

TEST(IntervalIndex, EndsWithTheFirstThatSatisfies) {
  const IntervalIndex index({{0, 10}, {5, 15}, {20, 30}});
  int asked = 0;
  EXPECT_TRUE(index.any({0, 30}, [&](size_t i) {
    ++asked;
    return i == 1;
  }));
  EXPECT_EQ(asked, 2);  // that which begins last, and it
}

}  // namespace
}  // namespace penstock::engine::interval_index_test
