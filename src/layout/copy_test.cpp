// Copy kernels: every fixed size and its neighbours, against a loop over bytes.
#include "layout/copy.hpp"

#include <gtest/gtest.h>

#include <vector>

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

TEST(Copy, DescendingMemoryIsGatheredInStreamOrder) {
  const auto source = pattern(64);
  std::vector<std::byte> packed(4);
  Cursor from(*LoopTree::strided(4, 1, -8, LoopTree::bytes(1)), 32, 1);
  gather(packed.data(), source.data(), from, 4);
  EXPECT_EQ(packed, (std::vector<std::byte>{source[32], source[24], source[16], source[8]}));
}

}  // namespace
}  // namespace penstock::layout::copy_test
