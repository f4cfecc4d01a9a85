// Copy kernels: every fixed size and its neighbours, against a loop over bytes.
#include "layout/copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "layout/listed_blocks.hpp"

namespace penstock::layout::copy_test {
namespace {

constexpr int64_t kBlocks = 37;

std::vector<std::byte> pattern(size_t n) {
  std::vector<std::byte> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = std::byte(i * 31 + i / 256 + 1);
  return v;
}

LoopTree every(int64_t block, int64_t stride) {
  return *LoopTree::strided(kBlocks, 1, stride, LoopTree::bytes(block));
}

class CopyBlocks : public testing::TestWithParam<int64_t> {};

TEST_P(CopyBlocks, GatherAndScatterMoveExactlyTheirBytes) {
  const int64_t block = GetParam(), stride = block + 5, n = kBlocks * block;
  const auto source = pattern(size_t(kBlocks * stride));
  std::vector<std::byte> packed(static_cast<size_t>(n)), back(source.size());
  Cursor from(every(block, stride), 0, 1), to(every(block, stride), 4096, 1);
  gather(packed.data(), source.data(), from, n);
  scatter(back.data(), 4096, to, packed.data(), n);
  EXPECT_EQ(from.position(), n);
  for (int64_t i = 0; i < int64_t(back.size()); ++i) {
    const bool in_block = i % stride < block;
    ASSERT_EQ(back[size_t(i)], in_block ? source[size_t(i)] : std::byte{0}) << i;
  }
}

TEST_P(CopyBlocks, TransferEqualsGatherThenScatter) {
  for (const int64_t other : {1, 3, 8, 24, 100}) {
    const int64_t block = GetParam(), n = kBlocks * std::min(block, other);
    const auto source = pattern(size_t(kBlocks * (block + 3)));
    std::vector<std::byte> packed(static_cast<size_t>(n)), expected(size_t(kBlocks * (other + 7)));
    std::vector<std::byte> target(expected.size());
    Cursor a(every(block, block + 3), 0, 1), b(every(other, other + 7), 64, 1);
    gather(packed.data(), source.data(), a, n);
    scatter(expected.data(), 64, b, packed.data(), n);
    a.seek(0);
    b.seek(0);
    transfer(target.data(), 64, b, source.data(), a, n);
    ASSERT_EQ(target, expected) << block << " into " << other;
    EXPECT_EQ(a.position(), n);
    EXPECT_EQ(b.position(), n);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, CopyBlocks,
                         testing::Values(1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 64,
                                         65, 1000));

// Irregular blocks: of different lengths, or of one; near each other, or far.
class CopyLists : public testing::TestWithParam<std::tuple<bool, int64_t>> {
 protected:
  static constexpr int kCount = 200;

  void SetUp() override {
    const auto [same, apart] = GetParam();
    Off at = 8;
    for (int i = 0; i < kCount; ++i) {
      const int64_t length = same ? 6 : 1 + i * 7 % 23;
      blocks_.push_back({at, length});
      at += length + 1 + i * i % 11 + (i == kCount / 2 ? apart : 0);
    }
  }
  // Twice, so that walks go from one list to the next.
  Cursor walk() const {
    const auto tree = *LoopTree::indexed(blocks_, LoopTree::bytes(1));
    return Cursor(*LoopTree::resized(tree, 0, tree.true_ub() + 5), 0, 2);
  }
  // Where each byte lies, block by block.
  std::vector<Off> offsets() const {
    std::vector<Off> all;
    for (const Off tile : {Off{0}, blocks_.back().displacement + blocks_.back().count + 5})
      for (const LoopTree::Block& b : blocks_)
        for (int64_t i = 0; i < b.count; ++i) all.push_back(tile + b.displacement + i);
    return all;
  }

  std::vector<LoopTree::Block> blocks_;
};

TEST_P(CopyLists, PiecesOfAnySizeAreGatheredAndScattered) {
  const std::vector<Off> places = offsets();
  const auto n = int64_t(places.size());
  const auto source = pattern(size_t(places.back() + 1));
  for (const int64_t piece : {int64_t{1}, int64_t{5}, int64_t{64}, int64_t{1000}, n}) {
    std::vector<std::byte> packed(places.size()), back(source.size());
    Cursor from = walk(), to = walk();
    for (int64_t done = 0; done < n; done += piece) {
      const int64_t bytes = std::min(piece, n - done);
      gather(packed.data() + done, source.data(), from, bytes);
      scatter(back.data(), 0, to, packed.data() + done, bytes);
      ASSERT_EQ(from.position(), done + bytes);
      ASSERT_EQ(to.position(), done + bytes);
    }
    for (int64_t i = 0; i < n; ++i)
      ASSERT_EQ(packed[size_t(i)], source[size_t(places[size_t(i)])]) << i << " by " << piece;
    std::vector<std::byte> expected(source.size());
    for (const Off at : places) expected[size_t(at)] = source[size_t(at)];
    ASSERT_EQ(back, expected) << "by " << piece;
  }
}

INSTANTIATE_TEST_SUITE_P(Lists, CopyLists,
                         testing::Combine(testing::Bool(), testing::Values(0, 1 << 20)));

using Blocks = std::vector<std::pair<Off, int64_t>>;

void add_run(const Run& run, Blocks& blocks) {
  for (int64_t i = 0; i < run.count; ++i)
    blocks.emplace_back(run.offset + i * run.stride, run.block);
}

// Nobody has the memory that these lie in: a list keeps them as words of eight bytes.
TEST(ListedBlocks, AreThoseOfTheWalkStepByStep) {
  const LoopTree::Block far[] = {{0, 3}, {7, 1}, {Off{1} << 40, 9}, {(Off{1} << 40) + 30, 2}};
  const auto once = *LoopTree::indexed(far, LoopTree::bytes(1));
  const auto tree = *LoopTree::resized(once, 0, once.true_ub() + 5);
  const int64_t bytes = 3 * tree.size();
  for (int64_t piece = 1; piece <= bytes; ++piece) {
    Cursor by_steps(tree, 11, 3), by_lists(tree, 11, 3);
    Blocks steps, lists;
    for (int64_t done = 0; done < bytes; done += piece) {
      for (int64_t left = std::min(piece, bytes - done); left > 0;) {
        add_run(by_steps.next(left), steps);
        left -= steps.back().second;
      }
      int64_t left = std::min(piece, bytes - done);
      const auto listed = [&](Off at, int64_t length) { lists.emplace_back(at, length); };
      while ((left -= by_lists.for_each_listed(left, listed)) > 0) {
        add_run(by_lists.next(left), lists);
        left -= lists.back().second;
      }
    }
    ASSERT_EQ(lists, steps) << piece;
    ASSERT_EQ(by_lists.position(), bytes);
  }
}

TEST(Copy, DescendingMemoryIsGatheredInStreamOrder) {
  const auto source = pattern(64);
  std::vector<std::byte> packed(4);
  Cursor from(*LoopTree::strided(4, 1, -8, LoopTree::bytes(1)), 32, 1);
  gather(packed.data(), source.data(), from, 4);
  EXPECT_EQ(packed, (std::vector<std::byte>{source[32], source[24], source[16], source[8]}));
}

}  // namespace
}  // namespace penstock::layout::copy_test
