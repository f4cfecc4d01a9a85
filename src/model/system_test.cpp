#include "model/system.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

namespace penstock::model::system_test {
namespace {

System plain() {
  System s;
  s.path = {0, 5e6, 1e6};
  s.paging_bytes_per_s = 5e5;
  s.memory_bytes = 5 << 20;
  s.block_bytes = 1 << 20;
  return s;
}

RC_GTEST_PROP(Blocks, EveryBlockIsOnOneNodeAtOnePlace, ()) {
  System s = plain();
  s.block_bytes = *rc::gen::inRange<int64_t>(1, 20);
  s.nodes = *rc::gen::inRange(1, 9);
  s.mapping = *rc::gen::element(Mapping::cyclic, Mapping::blocked);
  const auto n = *rc::gen::inRange<int64_t>(1, 400);
  const Blocks blocks(s, n);
  std::set<int64_t> found;
  int64_t bytes = 0;
  for (int node = 0; node < s.nodes; ++node) {
    for (int64_t i = 0; i < blocks.count_on(node); ++i) {
      const int64_t block = blocks.at(node, i);
      RC_ASSERT(blocks.node(block) == node);
      RC_ASSERT(blocks.place(block) == i);
      RC_ASSERT(blocks.bytes(block) > 0);
      RC_ASSERT(found.insert(block).second);
      bytes += blocks.bytes(block);
    }
  }
  RC_ASSERT(bytes == n);
  RC_ASSERT(int64_t(found.size()) == blocks.count());
}

TEST(Blocks, CyclicDealsThemAndBlockedCutsTheFile) {
  System s = plain();
  s.block_bytes = 10;
  s.nodes = 3;
  const Blocks cyclic(s, 70);
  s.mapping = Mapping::blocked;
  const Blocks blocked(s, 70);
  for (int64_t b = 0; b < 7; ++b) {
    EXPECT_EQ(cyclic.node(b), b % 3);
    EXPECT_EQ(blocked.node(b), b / 3);
  }
}

TEST(SystemCheck, WrongValuesAreNamedWithTheRemedy) {
  const auto says = [](auto change, int64_t n, const char* words) {
    System s = plain();
    change(s);
    const auto checked = check(s, n);
    ASSERT_FALSE(checked) << words;
    EXPECT_EQ(checked.error().error_class, ErrorClass::argument);
    EXPECT_NE(checked.error().detail.find(words), std::string::npos) << checked.error().detail;
  };
  EXPECT_TRUE(check(plain(), 1));
  says([](System&) {}, 0, "n_bytes must be at least 1");
  says([](System& s) { s.nodes = 0; }, 1, "nodes must be at least 1");
  says([](System& s) { s.block_bytes = 0; }, 1, "block_bytes must be at least 1");
  says([](System& s) { s.block_bytes = 1; }, kMostBlocks + 1, "give larger blocks");
  says([](System& s) { s.memory_bytes = 1; }, 1, "memory_bytes must hold a block");
  says([](System& s) { s.buffer_bytes = 1; }, 1, "buffer_bytes must be 0 (no buffer) or hold");
  says([](System& s) { s.path.disk_bytes_per_s = 0; }, 1, "disk_bytes_per_s must be positive");
  says([](System& s) { s.path.startup_s = -1; }, 1, "startup_s");
  says([](System& s) { s.paging_bytes_per_s = 0; }, 1, "paging_bytes_per_s must be positive");
  says([](System& s) { s.timeline_points = 1; }, 1, "timeline_points must be at least 2");
}

TEST(SystemCheck, ABufferThatMemoryHoldsNeedsNoPagingDisk) {
  System s = plain();
  s.paging_bytes_per_s = 0;
  s.buffer_bytes = s.memory_bytes;
  EXPECT_TRUE(check(s, 1));
}

}  // namespace
}  // namespace penstock::model::system_test
