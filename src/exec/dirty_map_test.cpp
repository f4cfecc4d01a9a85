#include "exec/dirty_map.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace penstock::exec::dirty_map_test {
namespace {

constexpr Extent kPage{8192, 12'288};

struct Map {
  std::vector<DirtyMap::Word> words = std::vector<DirtyMap::Word>(64);
  DirtyMap::Word touched = 0;
  DirtyMap map{words, kPage, touched};

  std::vector<Extent> extents() const {
    std::vector<Extent> all;
    map.for_each_extent([&](Extent e) { all.push_back(e); });
    return all;
  }
};

TEST(DirtyMap, JoinsWhatTouches) {
  Map m;
  EXPECT_EQ(m.map.mark(Extent{8200, 8300}), 100);
  EXPECT_EQ(m.map.mark(Extent{8300, 9000}), 700);
  EXPECT_EQ(m.map.mark(Extent{12'000, 12'288}), 288);
  EXPECT_EQ(m.extents(), (std::vector{Extent{8200, 9000}, Extent{12'000, 12'288}}));
}

TEST(DirtyMap, CountsWhatIsNewOnly) {
  Map m;
  EXPECT_EQ(m.map.mark(kPage), 4096);
  EXPECT_EQ(m.map.mark(Extent{9000, 9001}), 0);
  EXPECT_EQ(m.extents(), (std::vector{kPage}));
  m.map.clear();
  EXPECT_TRUE(m.extents().empty());
  EXPECT_EQ(m.map.end(), kPage.begin);
}

TEST(DirtyMap, FollowsACursor) {
  Map m;
  auto tree = *layout::LoopTree::resized(layout::LoopTree::bytes(8), 0, 16);
  layout::Cursor cursor(tree, 8192 + 4, layout::Cursor::kForever);
  EXPECT_EQ(m.map.mark(cursor, 8 * 100 + 3), 803);
  EXPECT_EQ(cursor.position(), 803);
  const std::vector<Extent> found = m.extents();
  ASSERT_EQ(found.size(), 101u);
  EXPECT_EQ(found[1], (Extent{8192 + 20, 8192 + 28}));
  EXPECT_EQ(found[100].size(), 3);
}

TEST(DirtyMap, ARunIsItsBlocks) {
  Map at_once, one_by_one;
  for (const layout::Run run : {layout::Run{8200, 3, 7, 500}, layout::Run{9000, 64, 64, 9},
                                layout::Run{8192, 4096, 4096, 1}}) {
    int64_t newly = 0;
    for (int64_t i = 0; i < run.count; ++i) {
      const Off at = run.offset + i * run.stride;
      newly += one_by_one.map.mark(Extent{at, at + run.block});
    }
    EXPECT_EQ(at_once.map.mark(run), newly);
    EXPECT_EQ(at_once.extents(), one_by_one.extents());
  }
}

// Against a set of bytes.
TEST(DirtyMap, IsTheSetOfTheBytesThatWereMarked) {
  std::mt19937_64 random(3);
  Map m;
  std::set<Off> bytes;
  for (int i = 0; i < 200; ++i) {
    const Off begin = std::uniform_int_distribution<Off>(kPage.begin, kPage.end - 1)(random);
    const Off end = std::min(kPage.end, begin + Off(random() % 300) + 1);
    int64_t newly = 0;
    for (Off at = begin; at < end; ++at) newly += bytes.insert(at).second ? 1 : 0;
    ASSERT_EQ(m.map.mark(Extent{begin, end}), newly);
    std::set<Off> marked;
    for (const Extent e : m.extents())
      for (Off at = e.begin; at < e.end; ++at) marked.insert(at);
    ASSERT_EQ(marked, bytes);
    ASSERT_EQ(m.map.end(), *bytes.rbegin() + 1);
  }
}

// Of pages that are not a power of two, too: each part begins where the one before ends.
TEST(DirtyMap, WhatWasTouchedIsFoundAndClearedWhateverThePagesLength) {
  std::mt19937_64 random(5);
  for (const Off length : {Off{4096}, Off{65 * 4096}, Off{1} << 20, (Off{5} << 20) + 3 * 4096}) {
    const Extent page{length, 2 * length};
    std::vector<DirtyMap::Word> words(size_t(length / DirtyMap::kWordBytes));
    DirtyMap::Word touched = 0;
    DirtyMap map(words, page, touched);
    for (int round = 0; round < 30; ++round) {
      std::vector<bool> model(size_t(length), false);
      for (int i = 0; i <= round; ++i) {
        const Off begin = std::uniform_int_distribution<Off>(0, length - 1)(random);
        const Off end = std::min(length, begin + 1 + Off(random() % (i % 3 == 0 ? 9000 : 90)));
        map.mark(Extent{page.begin + begin, page.begin + end});
        std::fill(model.begin() + begin, model.begin() + end, true);
      }
      std::vector<bool> marked(size_t(length), false);
      map.for_each_extent([&](Extent e) {
        std::fill(marked.begin() + (e.begin - page.begin), marked.begin() + (e.end - page.begin),
                  true);
      });
      ASSERT_EQ(marked, model) << length << ", round " << round;
      map.clear();
      ASSERT_EQ(map.end(), page.begin);
      for (const DirtyMap::Word& word : words) ASSERT_EQ(word.load(), 0U);
    }
  }
}

// Memory that nobody has stored to stays so: a page of which few bytes are written costs few.
TEST(DirtyMap, OfUntouchedPartsNothingIsLookedAt) {
  const Extent page{0, Off{1} << 20};
  std::vector<DirtyMap::Word> words(size_t(page.size() / DirtyMap::kWordBytes));
  DirtyMap::Word touched = 0;
  DirtyMap map(words, page, touched);
  map.mark(Extent{1000, 2000});
  words.back() = 1;  // as if there were something
  int extents = 0;
  map.for_each_extent([&](Extent e) {
    EXPECT_EQ(e, (Extent{1000, 2000}));
    ++extents;
  });
  EXPECT_EQ(extents, 1);
  map.clear();
  EXPECT_EQ(words.back().load(), 1U);
  map.clear_all();
  EXPECT_EQ(words.back().load(), 0U);
}

}  // namespace
}  // namespace penstock::exec::dirty_map_test
