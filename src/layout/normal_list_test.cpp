// Lists that are kept as they came: what the builders make of the same numbers is the oracle.
#include "layout/normal_list.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "layout/list_node.hpp"

namespace penstock::layout::normal_list_test {
namespace {

using Numbers = std::vector<uint32_t>;

OffsetList kept(const Numbers& units, int64_t unit) {
  return units.empty() ? OffsetList()
                       : OffsetList(std::as_bytes(std::span(units)), units.size(), unit);
}

// Numbers as they might come: mostly ascending, with small steps, so that each rule is broken now
// and then.
Numbers numbers(std::mt19937& random, size_t n) {
  Numbers all;
  uint32_t at = random() % 8 == 0 ? 1 : 0;
  for (size_t i = 0; i < n; ++i) {
    all.push_back(at);
    at += uint32_t(random() % 5) * (random() % 4 == 0 ? 1 : 2);
    if (random() % 30 == 0 && at > 3) at -= 3;
  }
  return all;
}

struct Came {
  Numbers places, starts;
  int64_t unit = 1;
  NodePtr child;

  static Came any(std::mt19937& random) {
    Came came;
    const size_t n = 1 + random() % 6;
    came.places = numbers(random, n);
    came.unit = 1 + int64_t(random() % 3);
    if (random() % 2 == 0)
      came.starts = numbers(random, n + 1);
    else
      came.child = node_of(Placed{0, int64_t(1 + random() % 4), nullptr});
    return came;
  }

  NodePtr keep() const { return keep_list(kept(places, unit), kept(starts, unit), child); }
  int64_t length(size_t i) const {
    return child ? child->size : (int64_t{starts[i + 1]} - starts[i]) * unit;
  }
  // Nothing where a length is none.
  Placed build() const {
    for (size_t i = 0; i < places.size(); ++i)
      if (length(i) < 1) return {};
    return *make_stretches(places.size(), [&](size_t i) {
      return Stretch{int64_t{places[i]} * unit, length(i)};
    });
  }
  // A list that the builders leave as it is, whose blocks ascend.
  bool is_normal(const Placed& built) const {
    const NodeKind kind = child ? NodeKind::blocks : NodeKind::segments;
    const bool same = built.node && built.offset == 0 && built.node->kind == kind &&
                      built.node->count == int64_t(places.size()) && built.node->monotone;
    return same && built.node->displacements == kept(places, unit) &&
           built.node->starts == kept(starts, unit);
  }
};

TEST(NormalList, IsKeptWhereTheBuildersMakeTheSame) {
  std::mt19937 random(20261125);
  int kept_lists = 0;
  for (int i = 0; i < 200'000; ++i) {
    const Came came = Came::any(random);
    const Placed built = came.build();
    const NodePtr node = came.keep();
    ASSERT_EQ(node != nullptr, came.is_normal(built)) << i;
    if (!node) continue;
    ++kept_lists;
    ASSERT_TRUE(equal(node, built.node)) << i;
    ASSERT_EQ(node->hash, built.node->hash);
    ASSERT_EQ(node->granule, built.node->granule);
    ASSERT_EQ(node->span, built.node->span);
    ASSERT_EQ(node->size, built.node->size);
    ASSERT_EQ(node->blocks, built.node->blocks);
    ASSERT_EQ(node->depth, built.node->depth);
  }
  EXPECT_GT(kept_lists, 1000);
}

TEST(NormalList, WhoseBytesAreTooManyIsForTheBuilders) {
  const Numbers places = {0, 3, 7}, starts = {0, 1, 3, 4};
  const int64_t most = INT64_MAX / 4;
  EXPECT_TRUE(keep_list(kept(places, 1), kept(starts, 1), nullptr));
  EXPECT_FALSE(keep_list(kept(places, most), kept(starts, most), nullptr));
}

}  // namespace
}  // namespace penstock::layout::normal_list_test
