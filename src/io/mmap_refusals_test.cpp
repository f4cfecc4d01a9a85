// Where the kernel maps nothing, or not now: no store ends in SIGBUS on a full disk, and what is
// not mapped is written all the same, and said.

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>

#include "base/file_limit_for_tests.hpp"
#include "io/mapped_for_tests.hpp"
#include "io/tiny_disk.hpp"

namespace penstock::io::mmap_refusals_test {
namespace {

using namespace mapped;

class MmapRefusals : public MappedTest {};

TEST_F(MmapRefusals, WithoutFallocateEverythingIsWrittenByPwriteAndSaid) {
  resize(65536);
  answers.fallocate_errno = EOPNOTSUPP;
  auto file = open();
  EXPECT_FALSE(write(*file, {0, 65536}, {{0, 65536}}, kX));
  EXPECT_NE(file->degraded().find("fallocate"), std::string::npos);
  EXPECT_NE(file->degraded().find("no window can be mapped"), std::string::npos);
  answers = {};
  const Lease lease = file->lease({0, 65536}).value();
  EXPECT_FALSE(is_mapped()) << "not asked again";
  file->submit(lease, {});
  EXPECT_EQ(file_.contents(), Bytes(65536, kX));
}

TEST_F(MmapRefusals, ALockedRangeIsWrittenByPwriteAndSaid) {
  resize(65536);
  auto file = open();
  const int other = ::open(file_.path().c_str(), O_RDWR | O_CLOEXEC);
  struct flock whole = {};
  whole.l_type = F_WRLCK;
  ASSERT_EQ(::fcntl(other, F_OFD_SETLK, &whole), 0);
  EXPECT_FALSE(write(*file, {0, 65536}, {{0, 65536}}, kX));
  EXPECT_NE(file->degraded().find("by a lock"), std::string::npos) << file->degraded();
  EXPECT_EQ(file_.contents(), Bytes(65536, kX));
  ::close(other);
}

TEST_F(MmapRefusals, AKernelThatCannotPopulateIsNotTrusted) {
  resize(65536);
  answers.madvise_errno = EINVAL;  // before Linux 5.14
  auto file = open();
  EXPECT_FALSE(write(*file, {0, 65536}, {{0, 65536}}, kX));
  EXPECT_NE(file->degraded().find("madvise"), std::string::npos);
  EXPECT_NE(file->degraded().find("no window can be mapped"), std::string::npos);
  EXPECT_FALSE(is_mapped());
  EXPECT_EQ(file_.contents(), Bytes(65536, kX));
}

TEST_F(MmapRefusals, WhatFailsForOneWindowIsTriedAgainForTheNext) {
  resize(65536);
  auto file = open();
  for (const int e : {ENOSPC, EDQUOT}) {
    answers.fallocate_errno = e;
    EXPECT_FALSE(write(*file, {0, 65536}, {{0, 4096}}, kX));
  }
  answers = {};
  for (const int e : {EFAULT, ENOMEM}) {
    answers.madvise_errno = e;
    EXPECT_FALSE(write(*file, {0, 65536}, {{8192, 65536}}, kX));
    EXPECT_FALSE(is_mapped());
  }
  answers = {};
  const Lease lease = file->lease({0, 65536}).value();
  EXPECT_TRUE(is_mapped());
  file->submit(lease, {});
  EXPECT_NE(file->degraded().find("No space left"), std::string::npos);
  EXPECT_NE(file->degraded().find("a window could not be mapped"), std::string::npos);
  Bytes model(65536, kX);
  std::fill_n(model.begin() + 4096, 4096, std::byte{0});
  EXPECT_EQ(file_.contents(), model);
}

TEST_F(MmapRefusals, AnInterruptedReservationIsRepeated) {
  resize(65536);
  answers.fallocate_interruptions = 3;
  auto file = open();
  const Lease lease = file->lease({0, 65536}).value();
  EXPECT_TRUE(is_mapped());
  EXPECT_EQ(answers.fallocate_interruptions, 0);
  file->submit(lease, {});
}

TEST_F(MmapRefusals, AFileSizeLimitGivesFileTooLargeAndTheExactPrefix) {
  put(counting_bytes(8192));
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  std::optional<LargestFile> limit(std::in_place, 10'000);
  auto file = open();
  const auto inside = write(*file, {0, 8192}, {{0, 8192}}, kX);
  const auto fault = write(*file, {8192, 20'480}, {{8192, 20'480}}, kX);
  limit.reset();
  std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(inside);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->error.error_class, ErrorClass::file_too_large);
  EXPECT_EQ(fault->first_missing, 10'000);
  EXPECT_EQ(file_.contents(), Bytes(10'000, kX));
}

// In /dev/shm, which every user may enter.
class MmapOfAnothersFile : public MappedTest {
 protected:
  MmapOfAnothersFile() : MappedTest("/dev/shm") {}
};

TEST_F(MmapOfAnothersFile, WhatMayBeWrittenButNotReadIsWrittenAndSaid) {
  constexpr uid_t kNobody = 65534;
  const bool root = ::geteuid() == 0;
  resize(65536);
  ASSERT_EQ(::chmod(file_.path().c_str(), 0222), 0);
  if (root) {
    ASSERT_EQ(::seteuid(kNobody), 0);
  }
  auto opened = find_mechanism("mmap")->open({.path = file_.path()});
  if (root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  ASSERT_TRUE(opened) << opened.error().message();
  EXPECT_NE((*opened)->degraded().find("written but not read"), std::string::npos);
  EXPECT_FALSE(write(**opened, {0, 65536}, {{0, 65536}}, kX));
  ASSERT_EQ(::chmod(file_.path().c_str(), 0600), 0);
  EXPECT_EQ(file_.contents(), Bytes(65536, kX));
}

class MmapOnATinyDisk : public OnATinyDisk<> {};

// Stores into a mapping of this hole would be a SIGBUS from the 65537th byte on.
TEST_F(MmapOnATinyDisk, AHoleThatTheDiskCannotFillIsAFaultAndNoSignal) {
  for (const int64_t window : {kWindowOfCycle, kWindowOfFile}) {
    const TemporaryFile target(directory_);
    ASSERT_EQ(::truncate(target.path().c_str(), 1 << 20), 0);
    auto file =
        find_mechanism("mmap")->open({.path = target.path(), .window_bytes = window}).value();
    EXPECT_EQ(file->degraded(), "");
    const Extent where{0, 262'144};
    const Lease lease = file->lease(where).value();
    std::fill(lease.memory.begin(), lease.memory.end(), kX);
    file->submit(lease, {&where, 1});
    const auto fault = file->reap();
    ASSERT_TRUE(fault);
    EXPECT_EQ(fault->error.error_class, ErrorClass::no_space);
    EXPECT_GT(fault->first_missing, 0);
    EXPECT_LE(fault->first_missing, 65536);
    EXPECT_NE(file->degraded().find("No space left"), std::string::npos);
    const Bytes got = target.contents();
    EXPECT_EQ(got.size(), size_t{1} << 20);
    EXPECT_TRUE(std::all_of(got.begin(), got.begin() + fault->first_missing,
                            [](std::byte b) { return b == kX; }));
    EXPECT_TRUE(file->close());
  }
}

TEST_F(MmapOnATinyDisk, WhatAFullDiskHoldsCanBeRewrittenInPlace) {
  const TemporaryFile target(directory_);
  const int fd = ::open(target.path().c_str(), O_WRONLY | O_CLOEXEC);
  const Bytes data = counting_bytes(65536);
  ASSERT_GT(::pwrite(fd, data.data(), data.size(), 0), 32768);
  ::close(fd);
  auto file = find_mechanism("mmap")->open({.path = target.path()}).value();
  const Extent where{0, 32768};
  const Lease lease = file->lease(where).value();
  std::fill(lease.memory.begin(), lease.memory.end(), kX);
  EXPECT_EQ(target.contents().front(), kX);
  file->submit(lease, {&where, 1});
  EXPECT_FALSE(file->reap());
  EXPECT_EQ(file->degraded(), "");
  EXPECT_TRUE(file->close());
}

}  // namespace
}  // namespace penstock::io::mmap_refusals_test
