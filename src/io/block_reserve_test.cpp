// Which writes have their blocks reserved, by the blocks that the file system counts and by how
// often it was asked.
#include "io/block_reserve.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <vector>

#include "base/units.hpp"
#include "io/kernel_answers.hpp"
#include "io/mechanism.hpp"
#include "io/probe.hpp"
#include "io/temporary_file.hpp"
#include "io/ways.hpp"

namespace penstock::io::block_reserve_test {
namespace {

using Bytes = std::vector<std::byte>;

class BlockReserveTest : public ::testing::Test {
 protected:
  explicit BlockReserveTest(const std::string& directory = test_directory())
      : file_(directory), fd_(::open(file_.path().c_str(), O_RDWR | O_CLOEXEC)) {}
  ~BlockReserveTest() override { ::close(fd_); }
  void SetUp() override {
    answers = {};
    if (probe(fd_).value().type != "ext4") GTEST_SKIP() << "needs ext4: set PENSTOCK_TEST_DIR";
  }
  void TearDown() override { answers = {}; }

  struct stat status() const {
    struct stat s {};
    EXPECT_EQ(::fstat(fd_, &s), 0);
    return s;
  }
  int64_t blocks_bytes() const { return int64_t(status().st_blocks) * 512; }
  void put(Off offset, int64_t bytes) {
    const Bytes data(size_t(bytes), std::byte{7});
    ASSERT_EQ(::pwrite(fd_, data.data(), data.size(), offset), ssize_t(bytes));
  }
  bool is_hole(Off offset) const { return ::lseek(fd_, offset, SEEK_DATA) != offset; }

  TemporaryFile file_;
  const int fd_;
  BlockReserve blocks_;
};

TEST_F(BlockReserveTest, ReservesAllOfAWriteAndTheFileDoesNotGrow) {
  blocks_.before_writing(fd_, {kMiB, 3 * kMiB});
  EXPECT_GE(blocks_bytes(), 2 * kMiB);
  EXPECT_EQ(status().st_size, 0);
}

TEST_F(BlockReserveTest, AShortWriteIsNotWorthTheCall) {
  blocks_.before_writing(fd_, {0, BlockReserve::kLeast - 1});
  EXPECT_EQ(answers.fallocated, 0);
  blocks_.before_writing(fd_, {0, BlockReserve::kLeast});
  EXPECT_EQ(answers.fallocated, 1);
}

TEST_F(BlockReserveTest, ThePartsOfWhatWasReservedTogetherNeedNoCall) {
  blocks_.before_writing(fd_, {0, 4 * kMiB});
  blocks_.before_writing(fd_, {0, 2 * kMiB});
  blocks_.before_writing(fd_, {2 * kMiB, 4 * kMiB});
  EXPECT_EQ(answers.fallocated, 1);
  blocks_.before_writing(fd_, {3 * kMiB, 5 * kMiB});
  EXPECT_EQ(answers.fallocated, 2);
}

// Of a device, whose node may lie anywhere, fallocate drops what the page cache has. A
// pipe's node lies there, too.
TEST_F(BlockReserveTest, WhatIsNoRegularFileHasNothingReserved) {
  const std::string path = file_.path() + ".pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const int pipe = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  ::unlink(path.c_str());
  ASSERT_GE(pipe, 0);
  blocks_.before_writing(pipe, {0, 4 * kMiB});
  ::close(pipe);
  EXPECT_EQ(answers.fallocated, 0);
}

TEST_F(BlockReserveTest, WhatIsWrittenAgainHasItsBlocks) {
  put(0, 4 * kMiB);
  blocks_.before_writing(fd_, {kMiB, 4 * kMiB});
  EXPECT_EQ(answers.fallocated, 0);
  blocks_.before_writing(fd_, {3 * kMiB, 5 * kMiB});
  EXPECT_EQ(answers.fallocated, 1);
}

TEST_F(BlockReserveTest, AFileWithHolesIsAskedFor) {
  ASSERT_EQ(::ftruncate(fd_, 8 * kMiB), 0);
  put(0, kMiB);
  blocks_.before_writing(fd_, {2 * kMiB, 3 * kMiB});
  EXPECT_EQ(answers.fallocated, 1);
  EXPECT_EQ(status().st_size, 8 * kMiB);
}

TEST_F(BlockReserveTest, ARefusalForGoodIsTheLastAndAFullDiskIsNot) {
  answers.fallocate_errno = ENOSPC;
  blocks_.before_writing(fd_, {0, kMiB});
  blocks_.before_writing(fd_, {0, kMiB});
  EXPECT_EQ(answers.fallocated, 2);
  answers.fallocate_errno = EOPNOTSUPP;  // ext4 without extents
  blocks_.before_writing(fd_, {0, kMiB});
  blocks_.before_writing(fd_, {0, kMiB});
  EXPECT_EQ(answers.fallocated, 3);
}

TEST_F(BlockReserveTest, WhoIsRefusedAsksForNothing) {
  blocks_.refuse();
  blocks_.before_writing(fd_, {0, kMiB});
  EXPECT_EQ(answers.fallocated, 0);
}

class InMemory : public BlockReserveTest {
 protected:
  InMemory() : BlockReserveTest("/dev/shm") {}
  void SetUp() override { answers = {}; }
};

TEST_F(InMemory, WhereItWouldNotPayNothingIsAsked) {
  blocks_.before_writing(fd_, {0, kMiB});
  EXPECT_EQ(answers.fallocated, 0);
}

// --- By the mechanisms ---

// Of two runs with a gap between, as a page with a hole.
constexpr Extent kWhere{0, 3 * kMiB}, kFirst{0, kMiB}, kSecond{2 * kMiB, 3 * kMiB};

void write_with_a_gap(MechanismFile& file) {
  const Lease lease = file.lease(kWhere).value();
  std::ranges::fill(lease.memory, std::byte{5});
  const Extent dirty[] = {kFirst, kSecond};
  file.submit(lease, dirty);
  ASSERT_FALSE(file.reap());
}

Bytes expected_with_a_gap() {
  Bytes all(size_t(kWhere.end), std::byte{5});
  std::fill_n(all.begin() + kFirst.end, kSecond.begin - kFirst.end, std::byte{0});
  return all;
}

class ByMechanism : public BlockReserveTest {
 protected:
  std::unique_ptr<MechanismFile> open(const Mechanism& m, const OpenRequest& way) {
    EXPECT_EQ(::ftruncate(fd_, 0), 0);
    answers = {};
    return m.open(request_for(file_.path(), way)).value();
  }
  static std::vector<const Mechanism*> through_the_cache() {
    std::vector<const Mechanism*> found;
    for (const char* name : {"pwrite", "pwritev", "uring", "linux_aio", "posix_aio"}) {
      const Mechanism* const m = find_mechanism(name);
      if (m->unavailable == nullptr || m->unavailable().empty()) found.push_back(m);
    }
    return found;
  }
};

TEST_F(ByMechanism, EachRunOfALeaseIsReservedAndNoGap) {
  for (const Mechanism* m : through_the_cache()) {
    SCOPED_TRACE(m->name);
    const auto file = open(*m, {});
    write_with_a_gap(*file);
    EXPECT_EQ(answers.fallocated, 2);
    EXPECT_TRUE(is_hole(kFirst.end)) << "the gap has blocks";
    EXPECT_EQ(status().st_size, kWhere.end);
    EXPECT_TRUE(file_.holds(expected_with_a_gap()));
    EXPECT_TRUE(file->close());
  }
}

TEST_F(ByMechanism, WhatIsWrittenWithoutALeaseIsReserved) {
  const Bytes data(size_t(kMiB), std::byte{3});
  for (const Mechanism* m : through_the_cache()) {
    SCOPED_TRACE(m->name);
    const auto file = open(*m, {});
    EXPECT_FALSE(file->write(data, 0));
    EXPECT_EQ(answers.fallocated, 1);
    file->reserve({kMiB, 4 * kMiB});
    EXPECT_GE(blocks_bytes(), 4 * kMiB);
    EXPECT_TRUE(file_.holds(data)) << "the file has grown";
    EXPECT_TRUE(file->close());
  }
}

TEST_F(ByMechanism, AFullDiskIsToldByTheWrite) {
  const Bytes data(size_t(kMiB), std::byte{3});
  for (const Mechanism* m : through_the_cache()) {
    SCOPED_TRACE(m->name);
    const auto file = open(*m, {});
    answers.fallocate_errno = ENOSPC;  // and room for the write, by now
    EXPECT_FALSE(file->write(data, 0));
    EXPECT_TRUE(file_.holds(data));
    EXPECT_TRUE(file->close());
  }
}

TEST_F(ByMechanism, WhatGoesToTheDeviceAtOnceIsNotReserved) {
  const Bytes data(size_t(kMiB), std::byte{3});
  for (const OpenRequest& way :
       {OpenRequest{.direct = Direct::always}, OpenRequest{.written = Written::through}}) {
    const auto file = open(*find_mechanism("pwrite"), way);
    if (way.direct == Direct::always && !file->degraded().empty()) continue;
    file->reserve({0, kMiB});
    write_with_a_gap(*file);
    EXPECT_EQ(answers.fallocated, 0);
    EXPECT_TRUE(file->close());
  }
}

}  // namespace
}  // namespace penstock::io::block_reserve_test
