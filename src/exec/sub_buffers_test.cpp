// Loads: what is packed comes out again; sub-buffers: bounded, and as many as owners are touched.
#include "exec/sub_buffers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <span>
#include <stdexcept>
#include <vector>

#include "base/clock.hpp"

namespace penstock::exec::sub_buffers_test {
namespace {

constexpr int64_t kLoad = 4096;

std::vector<std::byte> bytes_of(const layout::Run& run) {
  std::vector<std::byte> bytes;
  for (int64_t i = 0; i < run.bytes(); ++i) bytes.push_back(std::byte(run.offset * 7 + i));
  return bytes;
}

void append(Load& load, const layout::Run& run) {
  const std::vector<std::byte> bytes = bytes_of(run);
  std::ranges::copy(bytes, load.append(run));
}

TEST(Load, WhatIsPackedComesOutAgain) {
  std::mt19937_64 random{3};
  for (int round = 0; round < 200; ++round) {
    Load load(kLoad);
    std::vector<layout::Run> runs;
    while (load.room() > 0) {
      layout::Run run{int64_t(random() >> (2 + random() % 60)), int64_t(1 + random() % 64), 0, 1};
      if (random() % 2 == 0) run.count = int64_t(1 + random() % 20);
      if (run.count > 1) run.stride = run.block + int64_t(random() % 1000);
      run.block = std::min(run.block, load.room());
      run.count = std::min(run.count, load.room() / run.block);
      if (run.count == 1) run.stride = 0;
      append(load, run);
      runs.push_back(run);
    }
    EXPECT_LE(load.parcel().size(), size_t(kLoad));
    LoadReader reader(load.parcel());
    for (const layout::Run& run : runs) {
      const auto record = reader.next();
      ASSERT_TRUE(record);
      EXPECT_EQ(record->run.offset, run.offset);
      EXPECT_EQ(record->run.block, run.block);
      EXPECT_EQ(record->run.count, run.count);
      EXPECT_EQ(record->run.stride, run.stride);
      EXPECT_TRUE(std::ranges::equal(record->bytes, bytes_of(run)));
    }
    EXPECT_FALSE(reader.next());
    EXPECT_TRUE(reader.ok());
  }
}

TEST(Load, PiecesAtEvenDistancesAreDescribedOnce) {
  Load load(kLoad);
  append(load, {int64_t{1} << 40, 8, 40, 400});
  EXPECT_LE(load.parcel().size(), 3200u + 12);
}

TEST(Load, WhatIsCutShortOrMadeUpIsNotUnderstood) {
  Load load(kLoad);
  append(load, {100, 50, 60, 10});
  for (size_t n = 2; n < load.parcel().size(); ++n) {
    LoadReader reader(load.parcel().first(n));
    EXPECT_FALSE(reader.next());
    EXPECT_FALSE(reader.ok()) << n;
  }
  std::mt19937_64 random{5};
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::byte> noise(200);
    for (std::byte& b : noise) b = std::byte(random());
    LoadReader reader(noise);
    while (const auto record = reader.next()) EXPECT_LE(record->bytes.size(), noise.size());
  }
}

TEST(SubBuffers, MemoryFollowsTheOwnersThatAreTouchedNotTheRanks) {
  constexpr int kRanks = 100'000, kTouched = 10;
  SubBuffers buffers(kLoad, int64_t{64} << 20);
  for (int round = 0; round < 20; ++round)
    for (int i = 0; i < kTouched; ++i) {
      Load* const load = buffers.filling((kRanks / kTouched) * i);
      ASSERT_NE(load, nullptr);
      append(*load, {round * 100, 20, 0, 1});
    }
  EXPECT_EQ(buffers.loads(), kTouched);
  EXPECT_EQ(buffers.owners().size(), size_t(kTouched));
  EXPECT_LT(buffers.memory_bytes(), size_t{kTouched} * 512);
}

TEST(SubBuffers, TheBoundHoldsAndTheFullestIsNamed) {
  SubBuffers buffers(kLoad, 3 * kLoad);
  append(*buffers.filling(7), {0, 10, 0, 1});
  append(*buffers.filling(9), {0, 4000, 0, 1});
  append(*buffers.filling(9), {9000, 4000, 0, 1});
  EXPECT_EQ(buffers.filling(8), nullptr) << "three are out";
  EXPECT_EQ(buffers.fullest(), 9);
  EXPECT_NE(buffers.filling(7), nullptr) << "that one has room";
  std::vector<Load> taken = buffers.take(9);
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(LoadReader(taken[1].parcel()).next()->run.offset, 9000) << "oldest first";
  EXPECT_EQ(buffers.filling(8), nullptr) << "on their way";
  for (Load& load : taken) buffers.give_back(std::move(load).take());
  EXPECT_NE(buffers.filling(8), nullptr);
  EXPECT_EQ(buffers.loads(), 2);
}

TEST(SubBuffers, OneLoadIsAlwaysToBeHad) {
  SubBuffers buffers(kLoad, 1);
  EXPECT_NE(buffers.filling(5), nullptr);
  EXPECT_EQ(buffers.filling(6), nullptr);
}

TEST(SubBuffers, WhatWasCopiedIsNotOldAndIsCopiedAgainOnlyWithWhatCameSince) {
  SubBuffers buffers(kLoad, 4 * kLoad);
  append(*buffers.filling(9), {0, 4000, 0, 1});
  append(*buffers.filling(9), {9000, 10, 0, 1});
  std::vector<Off> copied;
  const auto copy = [&](std::span<const std::byte> parcel) {
    LoadReader reader(parcel);
    while (const auto record = reader.next()) copied.push_back(record->run.offset);
  };
  EXPECT_EQ(buffers.owners_since(now_s()), std::vector{9});
  buffers.copy_news(9, copy);
  EXPECT_EQ(copied, (std::vector<Off>{0, 9000}));
  EXPECT_TRUE(buffers.owners_since(now_s()).empty());
  const double before_s = now_s();
  append(*buffers.filling(9), {9500, 10, 0, 1});
  EXPECT_GE(buffers.came_s(9), before_s);
  EXPECT_EQ(buffers.owners_since(now_s()), std::vector{9});
  copied.clear();
  buffers.copy_news(9, copy);
  EXPECT_EQ(copied, (std::vector<Off>{9000, 9500})) << "the load that has news";
  copied.clear();
  buffers.copy_news(9, copy);
  EXPECT_TRUE(copied.empty());
  buffers.forget_copies(9, before_s);
  EXPECT_EQ(buffers.came_s(9), before_s);
  buffers.copy_news(9, copy);
  EXPECT_EQ(copied, (std::vector<Off>{0, 9000, 9500}));
  EXPECT_EQ(buffers.take(9).size(), 2u) << "all are still here";
}

TEST(SubBuffers, WhatWasNotCopiedDoesNotGetOlder) {
  SubBuffers buffers(kLoad, kLoad);
  append(*buffers.filling(9), {0, 10, 0, 1});
  const double came_s = buffers.came_s(9);
  buffers.forget_copies(9, came_s - 1);
  buffers.forget_copies(8, came_s - 1);
  EXPECT_EQ(buffers.came_s(9), came_s);
}

TEST(SubBuffers, WhereALoadHasNoMemoryNothingHasHappened) {
  SubBuffers buffers(-1, 1);  // no vector takes so many bytes
  EXPECT_THROW(buffers.filling(3), std::length_error);
  EXPECT_TRUE(buffers.empty());
  EXPECT_FALSE(buffers.has(3));
  EXPECT_FALSE(buffers.fullest());
  EXPECT_EQ(buffers.loads(), 0);
  EXPECT_THROW(buffers.filling(3), std::length_error);
}

}  // namespace
}  // namespace penstock::exec::sub_buffers_test
