// Memory that processes share: that what was populated is there, and mapped where that was asked.
#include "comm/shared_segment.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

namespace penstock::comm::shared_segment_test {
namespace {

constexpr size_t kBytes = size_t{8} << 20;

// Of the mapping that begins there: the bytes that need no fault any more.
size_t mapped_bytes(const void* begin) {
  std::ifstream maps("/proc/self/smaps");
  std::ostringstream at;
  at << std::hex << reinterpret_cast<uintptr_t>(begin) << "-";
  std::string line;
  while (std::getline(maps, line) && !line.starts_with(at.str())) continue;
  while (std::getline(maps, line))
    if (line.starts_with("Rss:")) return size_t(std::stoul(line.substr(4))) << 10;
  return 0;
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
  EXPECT_EQ(mapped_bytes(two.second->memory().data()), 0U);
  two.second->expect_stores(kBytes / 2, kBytes / 2);
  EXPECT_EQ(mapped_bytes(two.second->memory().data()), kBytes / 2);
  EXPECT_EQ(mapped_bytes(two.first->memory().data()), 0U) << "by this one, not by the other";
}

// For who has it mapped, too.
TEST(SharedSegment, WhatIsClearedIsZeroAndHasNoMemoryAndTheRestIsAsItWas) {
  const Two two;
  ASSERT_TRUE(two.first->populate(0, kBytes));
  EXPECT_EQ(two.second->populated_bytes(), kBytes);
  std::ranges::fill(two.second->memory(), std::byte{7});
  ASSERT_TRUE(two.first->clear(0, kBytes / 2));
  EXPECT_EQ(two.second->populated_bytes(), kBytes / 2);
  ASSERT_TRUE(two.first->populate(0, kBytes));
  const auto is_seven = [](std::byte byte) { return byte == std::byte{7}; };
  EXPECT_TRUE(std::ranges::none_of(two.second->memory().first(kBytes / 2), is_seven));
  EXPECT_TRUE(std::ranges::all_of(two.second->memory().subspan(kBytes / 2), is_seven));
}

// Nothing is mapped for nothing, and nothing fails.
TEST(SharedSegment, OfThreadsItIsLeftAsItIs) {
  const auto segment = make_thread_segment(kBytes).value();
  const size_t before = mapped_bytes(segment->memory().data());
  segment->expect_stores(0, kBytes);
  EXPECT_EQ(mapped_bytes(segment->memory().data()), before);
}

}  // namespace
}  // namespace penstock::comm::shared_segment_test
