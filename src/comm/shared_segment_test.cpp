// Memory that processes share: that what was populated is there, and mapped where that was asked.
#include "comm/shared_segment.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

namespace penstock::comm::shared_segment_test {
namespace {

constexpr size_t kBytes = size_t{8} << 20;

long faults() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
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

TEST(SharedSegment, ExpectedStoresTakeNoFaultForEachPage) {
  if (!kernel_populates()) GTEST_SKIP() << "this kernel cannot fill a page table by one call";
  const Two two;
  ASSERT_TRUE(two.first->populate(0, kBytes));
  const auto pages = long(kBytes) / ::sysconf(_SC_PAGESIZE);
  long before = faults();
  std::ranges::fill(two.first->memory(), std::byte{1});
  EXPECT_GE(faults() - before, pages);
  two.second->expect_stores(0, kBytes);
  before = faults();
  std::ranges::fill(two.second->memory(), std::byte{2});
  EXPECT_LT(faults() - before, pages / 8);
}

// Nothing is mapped for nothing, and nothing fails.
TEST(SharedSegment, OfThreadsItIsLeftAsItIs) {
  const auto segment = make_thread_segment(kBytes).value();
  const long before = faults();
  segment->expect_stores(0, kBytes);
  EXPECT_LT(faults() - before, 16);
}

}  // namespace
}  // namespace penstock::comm::shared_segment_test
