// Memory that processes share: that what was populated is there, and mapped where that was asked.
#include "comm/shared_segment.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/descriptors_for_tests.hpp"
#include "base/file_limit_for_tests.hpp"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

namespace penstock::comm::shared_segment_test {
namespace {

constexpr size_t kBytes = size_t{8} << 20;
constexpr size_t kPage = 4096;

// Of a segment's pages, how much needs no fault any more.
size_t mapped_bytes(const SharedSegment& segment) {
  std::ifstream maps("/proc/self/pagemap", std::ios::binary);
  const std::span<std::byte> memory = segment.memory();
  const auto first = reinterpret_cast<uintptr_t>(memory.data()) / kPage;
  std::vector<uint64_t> pages(memory.size() / kPage);
  maps.seekg(std::streamoff(first * sizeof(uint64_t)));
  maps.read(reinterpret_cast<char*>(pages.data()),
            std::streamsize(pages.size() * sizeof(uint64_t)));
  constexpr uint64_t kPresent = uint64_t{1} << 63;
  return kPage *
         size_t(std::ranges::count_if(pages, [](uint64_t p) { return (p & kPresent) != 0; }));
}

bool kernel_populates() {
  const auto page = size_t(::sysconf(_SC_PAGESIZE));
  void* at = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const bool does = ::madvise(at, page, MADV_POPULATE_READ) == 0;
  ::munmap(at, page);
  return does;
}

// Made by one, opened by another, as by two ranks of a node.
struct Two {
  std::string name = unused_segment_name("test");
  std::shared_ptr<SharedSegment> first = make_segment(name, kBytes, Room::when_used).value();
  std::shared_ptr<SharedSegment> second = open_segment(name, kBytes, Room::when_used).value();
  Two() { forget_segment_name(name); }
};

TEST(SharedSegment, IsNotMadeWhereAFileMayNotBeSoLarge) {
  const LargestFile limit(Off{kBytes} - 1);
  for (const Room room : {Room::now, Room::when_used}) {
    const std::string name = unused_segment_name("test");
    const auto made = make_segment(name, kBytes, room);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().error_class, ErrorClass::file_too_large);
    EXPECT_FALSE(std::filesystem::exists("/dev/shm/" + name)) << "no name is left";
  }
}

TEST(SharedSegment, TakesNoMemoryBeyondALimitThatCameLater) {
  const Two two;
  const LargestFile limit(kBytes / 2);
  EXPECT_TRUE(two.first->populate(0, kBytes / 4));
  const Result<void> beyond = two.first->populate(0, kBytes);
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().error_class, ErrorClass::file_too_large);
}

TEST(SharedSegment, WhatOneStoresTheOtherSees) {
  const Two two;
  ASSERT_TRUE(two.first->populate(0, kBytes));
  two.second->expect_stores(0, kBytes);
  std::ranges::fill(two.first->memory(), std::byte{7});
  EXPECT_EQ(std::ranges::count(two.second->memory(), std::byte{7}), ptrdiff_t(kBytes));
}

TEST(SharedSegment, WhereStoresAreExpectedAllIsMappedAtOnce) {
  if (!kernel_populates()) GTEST_SKIP() << "this kernel cannot fill a page table by one call";
  const Two two;
  ASSERT_TRUE(two.first->populate(0, kBytes));
  EXPECT_EQ(mapped_bytes(*two.second), 0U);
  two.second->expect_stores(kBytes / 2, kBytes / 2);
  EXPECT_EQ(mapped_bytes(*two.second), kBytes / 2);
  EXPECT_EQ(mapped_bytes(*two.first), 0U) << "by this one, not by the other";
}

// For who has it mapped, too.
TEST(SharedSegment, WhatIsClearedIsZeroAndTheRestIsAsItWas) {
  const Two two;
  ASSERT_TRUE(two.first->populate(0, kBytes));
  EXPECT_EQ(two.second->populated_bytes(), kBytes);
  std::ranges::fill(two.second->memory(), std::byte{7});
  ASSERT_TRUE(two.first->clear(0, kBytes / 2));
  ASSERT_TRUE(two.first->populate(0, kBytes));
  const auto is_seven = [](std::byte byte) { return byte == std::byte{7}; };
  EXPECT_TRUE(std::ranges::none_of(two.second->memory().first(kBytes / 2), is_seven));
  EXPECT_TRUE(std::ranges::all_of(two.second->memory().subspan(kBytes / 2), is_seven));
}

// A store there would kill us where /dev/shm is full.
TEST(SharedSegment, WhatWasNotPopulatedIsNotTouchedToClearIt) {
  const Two two;
  ASSERT_TRUE(two.first->populate(0, kPage + 1));
  ASSERT_TRUE(two.first->populate(kBytes / 2, kPage));
  std::ranges::fill(two.second->memory().first(kPage), std::byte{7});
  two.second->memory()[kBytes / 2] = std::byte{7};
  ASSERT_TRUE(two.first->clear(0, kBytes));
  EXPECT_EQ(mapped_bytes(*two.first), 2 * kPage);
  EXPECT_EQ(two.second->memory()[0], std::byte{0});
  EXPECT_EQ(two.second->memory()[kBytes / 2], std::byte{0}) << "this page is a new one";
}

// Also what one of them takes, in whichever order they rest.
TEST(SharedSegment, WithoutItsDescriptorMemoryIsTakenThroughTheMapping) {
  if (!kernel_populates()) GTEST_SKIP() << "this kernel cannot fill a page table by one call";
  const Two two;
  const int before = open_descriptors();
  ASSERT_TRUE(two.first->rest());
  EXPECT_EQ(open_descriptors(), before - 1);
  ASSERT_TRUE(two.second->populate(0, kBytes / 2));
  ASSERT_TRUE(two.second->rest());
  EXPECT_TRUE(two.second->rest()) << "again";
  EXPECT_EQ(open_descriptors(), before - 2);
  ASSERT_TRUE(two.first->populate(kBytes / 2, kBytes / 2));
  EXPECT_EQ(two.second->populated_bytes(), kBytes);
  EXPECT_EQ(mapped_bytes(*two.first), kBytes / 2 + kPage) << "its own, and one page when it rested";
  std::ranges::fill(two.first->memory(), std::byte{7});
  EXPECT_EQ(std::ranges::count(two.second->memory(), std::byte{7}), ptrdiff_t(kBytes));
}

// Nothing is mapped for nothing, and nothing fails.
TEST(SharedSegment, OfThreadsItIsLeftAsItIs) {
  const auto segment = make_thread_segment(kBytes).value();
  const size_t before = mapped_bytes(*segment);
  segment->expect_stores(0, kBytes);
  EXPECT_EQ(mapped_bytes(*segment), before);
}

}  // namespace
}  // namespace penstock::comm::shared_segment_test
