// The contract of mmap (docs/decisions/0019-mmap.md): windows are the file's own pages, no store
// ends in SIGBUS on a full disk, the file is never longer than what was written, and what is not
// mapped is said.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>

#include "io/kernel_answers.hpp"
#include "io/mappable_directory.hpp"
#include "io/mechanism.hpp"
#include "io/temporary_file.hpp"

namespace penstock::io::mmap_test {
namespace {

using Bytes = std::vector<std::byte>;

Bytes counting_bytes(size_t n) {
  Bytes b(n);
  for (size_t i = 0; i < n; ++i) b[i] = std::byte(i * 7 + i / 256);
  return b;
}

class Mmap : public ::testing::Test {
 protected:
  explicit Mmap(const std::string& directory = mappable_directory()) : file_(directory) {}
  void SetUp() override { answers = {}; }
  void TearDown() override { answers = {}; }

  std::unique_ptr<MechanismFile> open() {
    return find_mechanism("mmap")->open({.path = file_.path()}).value();
  }

  void put(const Bytes& data) {
    const int fd = ::open(file_.path().c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_EQ(::pwrite(fd, data.data(), data.size(), 0), ssize_t(data.size()));
    ::close(fd);
  }
  void resize(Off size) { ASSERT_EQ(::truncate(file_.path().c_str(), size), 0); }

  struct stat status() const {
    struct stat s {};
    EXPECT_EQ(::stat(file_.path().c_str(), &s), 0);
    return s;
  }

  static void store(const Lease& lease, Extent e, std::byte value) {
    std::fill_n(lease.memory.begin() + (e.begin - lease.where.begin), e.size(), value);
  }

  // Stores to the dirty extents, submits them and reaps.
  static std::optional<Fault> write(MechanismFile& file, Extent where,
                                    const std::vector<Extent>& dirty, std::byte value) {
    const Lease lease = file.lease(where).value();
    for (const Extent e : dirty) store(lease, e, value);
    file.submit(lease, dirty);
    return file.reap();
  }

  bool is_mapped() const { return mappings() > 0; }
  int mappings() const {
    int n = 0;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
      if (line.find(file_.path()) != std::string::npos) ++n;
    return n;
  }

  TemporaryFile file_;
};

constexpr std::byte kX{'x'};

TEST_F(Mmap, AStoredByteIsInTheFileBeforeItIsSubmitted) {
  Bytes model = counting_bytes(100'000);
  put(model);
  auto file = open();
  EXPECT_EQ(file->degraded(), "");
  const Extent where{5000, 70'000}, dirty{6000, 6100};
  const Lease lease = file->lease(where).value();
  EXPECT_TRUE(is_mapped());
  store(lease, dirty, kX);
  std::fill_n(model.begin() + 6000, 100, kX);
  EXPECT_EQ(file_.contents(), model);
  file->submit(lease, {&dirty, 1});
  EXPECT_FALSE(is_mapped());
  EXPECT_FALSE(file->reap());
  EXPECT_TRUE(file->sync(SyncKind::full));
  EXPECT_TRUE(file->close());
  EXPECT_EQ(file_.contents(), model);
  EXPECT_EQ(file->degraded(), "");
}

TEST_F(Mmap, AWindowOfAHoleHasItsBlocksAndTheFileKeepsItsSize) {
  resize(1 << 20);
  auto file = open();
  const Lease lease = file->lease({65536, 131072}).value();
  EXPECT_TRUE(is_mapped());
  EXPECT_GE(status().st_blocks * 512, 65536);
  EXPECT_EQ(status().st_size, 1 << 20);
  file->submit(lease, {});
  EXPECT_FALSE(is_mapped());
  EXPECT_EQ(file_.contents(), Bytes(1 << 20));
}

TEST_F(Mmap, TheEndOfTheFileMayLieInsideAPageOfTheWindow) {
  Bytes model = counting_bytes(10'001);
  put(model);
  auto file = open();
  EXPECT_FALSE(write(*file, {8192, 10'001}, {{9000, 10'001}}, kX));
  EXPECT_EQ(file->degraded(), "");
  std::fill(model.begin() + 9000, model.end(), kX);
  EXPECT_EQ(file_.contents(), model);
}

TEST_F(Mmap, TheFileGrowsToWhatWasWrittenAndNoFurther) {
  auto file = open();
  EXPECT_FALSE(write(*file, {0, 65536}, {{0, 100}, {4096, 5000}}, kX));
  EXPECT_EQ(status().st_size, 5000);
  const Lease unwritten = file->lease({0, 65536}).value();
  file->submit(unwritten, {});
  EXPECT_EQ(status().st_size, 5000);
  EXPECT_EQ(file->degraded(), "");
}

// Also what a lease held, once it is known which of its bytes were written.
TEST_F(Mmap, WhatGrowsTheFileIsStoredThroughAWindow) {
  auto file = open();
  const Bytes bytes(100'000, kX);
  const int before = answers.populated;
  EXPECT_FALSE(file->write(bytes, 0));
  EXPECT_FALSE(write(*file, {100'000, 400'000}, {{100'000, 300'000}}, kX));
  EXPECT_EQ(answers.populated, before + 2);
  EXPECT_FALSE(file->write(std::span(bytes).first(100), 300'000)) << "too short to be mapped";
  EXPECT_EQ(answers.populated, before + 2);
  EXPECT_FALSE(is_mapped());
  EXPECT_EQ(file_.contents(), Bytes(300'100, kX));
  EXPECT_EQ(file->degraded(), "");
}

TEST_F(Mmap, APageThatReachesBehindTheEndKeepsWhatIsBeforeIt) {
  Bytes model = counting_bytes(10'000);
  put(model);
  auto file = open();
  EXPECT_FALSE(write(*file, {8192, 20'480}, {{8200, 8300}, {9999, 12'288}}, kX));
  model.resize(12'288);
  std::fill_n(model.begin() + 8200, 100, kX);
  std::fill(model.begin() + 9999, model.end(), kX);
  EXPECT_EQ(file_.contents(), model);
}

TEST_F(Mmap, WindowsAndOrdinaryBuffersAreReapedInOrder) {
  resize(65536);
  auto file = open();
  const Extent inside{0, 65536}, behind{65536, 131072};
  const Lease first = file->lease(behind).value(), second = file->lease(inside).value();
  EXPECT_TRUE(is_mapped());
  store(second, inside, std::byte{'y'});
  store(first, behind, kX);
  file->submit(first, {&behind, 1});
  file->submit(second, {&inside, 1});
  EXPECT_FALSE(file->reap());
  EXPECT_FALSE(file->reap());
  Bytes model(131072, kX);
  std::fill_n(model.begin(), 65536, std::byte{'y'});
  EXPECT_EQ(file_.contents(), model);
}

TEST_F(Mmap, WindowsAreUnmappedOverAndOver) {
  resize(1 << 20);
  auto file = open();
  for (int i = 0; i < 500; ++i)
    ASSERT_FALSE(write(*file, {4096 * (i % 200), 1 << 20}, {{4096 * (i % 200), 820'000}}, kX));
  EXPECT_FALSE(is_mapped());
  EXPECT_EQ(file->degraded(), "");
}

TEST_F(Mmap, AWindowThatIsStillOutIsUnmappedWithTheFile) {
  resize(65536);
  auto file = open();
  (void)file->lease({0, 65536}).value();
  EXPECT_TRUE(file->close());
  file.reset();
  EXPECT_FALSE(is_mapped());
}

// ---- window=file

class MmapOfTheWholeFile : public Mmap {
 protected:
  std::unique_ptr<MechanismFile> open() {
    return find_mechanism("mmap")
        ->open({.path = file_.path(), .window_bytes = kWindowOfFile})
        .value();
  }
};

TEST_F(MmapOfTheWholeFile, WindowsArePartsOfOneMappingThatStaysUntilTheFileIsClosed) {
  Bytes model = counting_bytes(1 << 20);
  put(model);
  auto file = open();
  EXPECT_FALSE(is_mapped()) << "not before it is needed";
  const Extent late{700'000, 900'000}, early{5000, 70'000};
  const Lease second = file->lease(late).value(), first = file->lease(early).value();
  EXPECT_EQ(second.memory.data() - first.memory.data(), late.begin - early.begin);
  EXPECT_EQ(mappings(), 1);
  for (const Lease& lease : {second, first}) {
    store(lease, lease.where, kX);
    std::fill_n(model.begin() + lease.where.begin, lease.where.size(), kX);
    EXPECT_EQ(file_.contents(), model) << "in the file at the store";
    file->submit(lease, {&lease.where, 1});
    EXPECT_FALSE(file->reap());
  }
  EXPECT_EQ(mappings(), 1);
  EXPECT_EQ(file->lease(early).value().memory.data(), first.memory.data()) << "mapped once";
  EXPECT_EQ(file->degraded(), "");
  EXPECT_TRUE(file->close());
  EXPECT_TRUE(is_mapped()) << "a window that is still out";
  file.reset();
  EXPECT_FALSE(is_mapped());
}

TEST_F(MmapOfTheWholeFile, CloseUnmapsIt) {
  resize(65536);
  auto file = open();
  EXPECT_FALSE(write(*file, {0, 65536}, {{0, 65536}}, kX));
  EXPECT_TRUE(is_mapped());
  EXPECT_TRUE(file->sync(SyncKind::full));
  EXPECT_TRUE(file->close());
  EXPECT_FALSE(is_mapped());
  EXPECT_EQ(file_.contents(), Bytes(65536, kX));
}

// It is mapped with room to grow, and anew when that is used up.
TEST_F(MmapOfTheWholeFile, AFileThatGrewIsMappedAnewAndWindowsOfBeforeStay) {
  constexpr Off kFar = Off{200} << 20;
  resize(65536);
  auto file = open();
  const Extent old{0, 4096};
  const Lease before = file->lease(old).value();
  EXPECT_FALSE(write(*file, {65536, 200'704}, {{65536, 150'000}}, kX));
  EXPECT_EQ(status().st_size, 150'000);
  EXPECT_EQ(mappings(), 1);
  EXPECT_FALSE(file->write(Bytes(65536, std::byte{'y'}), kFar));
  EXPECT_EQ(status().st_size, kFar + 65536);
  EXPECT_EQ(mappings(), 2);
  store(before, old, kX);
  file->submit(before, {&old, 1});
  EXPECT_EQ(mappings(), 1);
  EXPECT_FALSE(file->reap());
  EXPECT_EQ(file->degraded(), "");
  Bytes model(size_t(kFar) + 65536);
  std::fill_n(model.begin(), 4096, kX);
  std::fill_n(model.begin() + 65536, 150'000 - 65536, kX);
  std::fill_n(model.begin() + kFar, 65536, std::byte{'y'});
  EXPECT_EQ(file_.contents(), model);
}

TEST_F(Mmap, NothingIsMappedWhereWritesHaveToBeOnTheDevice) {
  resize(1 << 20);
  auto file =
      find_mechanism("mmap")->open({.path = file_.path(), .written = Written::through}).value();
  const Lease lease = file->lease({0, 65536}).value();
  EXPECT_FALSE(is_mapped());
  file->submit(lease, {});
  const int before = answers.populated;
  EXPECT_FALSE(file->write(Bytes(100'000, kX), 0));
  EXPECT_EQ(answers.populated, before);
  EXPECT_NE(file->degraded().find("on the device"), std::string::npos);
}

// Pages that nobody stores to would be faulted in.
TEST_F(Mmap, ALeaseIsAWindowOnlyWhileLeasesAreFilled) {
  constexpr Off kBytes = 1 << 20;
  resize(kBytes);
  auto file = open();
  EXPECT_FALSE(write(*file, {0, kBytes}, {{0, 4096}, {kBytes - 4096, kBytes}}, kX));
  const Lease after_scattered = file->lease({0, kBytes}).value();
  EXPECT_FALSE(is_mapped());
  store(after_scattered, {0, kBytes}, kX);
  const Extent all{0, kBytes};
  file->submit(after_scattered, {&all, 1});
  EXPECT_FALSE(file->reap());
  const Lease after_filled = file->lease({0, kBytes}).value();
  EXPECT_TRUE(is_mapped());
  file->submit(after_filled, {});
  EXPECT_EQ(file_.contents(), Bytes(kBytes, kX));
  EXPECT_EQ(file->degraded(), "");
}

// benson-2003's windows: mapped, filled by many writes, and left for the next.
TEST_F(Mmap, AWindowOfBytesStaysForTheWritesInIt) {
  constexpr int64_t kWindow = 1 << 20;
  constexpr int kMostKept = 8;
  const Bytes bytes(65536, kX);
  auto file = find_mechanism("mmap")->open({.path = file_.path(), .window_bytes = kWindow}).value();
  for (Off at = 0; at < 10 * kWindow; at += 65536) {
    ASSERT_FALSE(file->write(bytes, at));
    EXPECT_EQ(mappings(), std::min(kMostKept, int(at / kWindow) + 1));
    EXPECT_EQ(status().st_size, at + 65536);
  }
  EXPECT_FALSE(file->write(bytes, 10 * kWindow - 100)) << "in two windows: mapped for itself";
  EXPECT_EQ(mappings(), kMostKept);
  EXPECT_TRUE(file->close());
  EXPECT_FALSE(is_mapped());
  EXPECT_EQ(file_.contents(), Bytes(10 * kWindow - 100 + 65536, kX));
}

// What the mapping held before says nothing of what is there now.
TEST_F(MmapOfTheWholeFile, AFileThatWasCutAndGrewAgainIsReservedAnew) {
  put(counting_bytes(1 << 20));
  auto file = open();
  EXPECT_FALSE(write(*file, {0, 1 << 20}, {{0, 1 << 20}}, kX));
  resize(0);
  resize(1 << 20);
  const Extent where{0, 1 << 20};
  const Lease lease = file->lease(where).value();
  EXPECT_GE(status().st_blocks * 512, 1 << 20);
  store(lease, where, std::byte{'y'});
  file->submit(lease, {&where, 1});
  EXPECT_FALSE(file->reap());
  EXPECT_EQ(file_.contents(), Bytes(1 << 20, std::byte{'y'}));
}

TEST_F(MmapOfTheWholeFile, OnlyWhatIsLeasedIsReserved) {
  resize(64 << 20);
  auto file = open();
  EXPECT_FALSE(write(*file, {1 << 20, 2 << 20}, {{1 << 20, 2 << 20}}, kX));
  EXPECT_LT(status().st_blocks * 512, 8 << 20);
}

// ---- where the kernel says no

TEST_F(Mmap, WithoutFallocateEverythingIsWrittenByPwriteAndSaid) {
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

TEST_F(Mmap, AKernelThatCannotPopulateIsNotTrusted) {
  resize(65536);
  answers.madvise_errno = EINVAL;  // before Linux 5.14
  auto file = open();
  EXPECT_FALSE(write(*file, {0, 65536}, {{0, 65536}}, kX));
  EXPECT_NE(file->degraded().find("madvise"), std::string::npos);
  EXPECT_NE(file->degraded().find("no window can be mapped"), std::string::npos);
  EXPECT_FALSE(is_mapped());
  EXPECT_EQ(file_.contents(), Bytes(65536, kX));
}

TEST_F(Mmap, WhatFailsForOneWindowIsTriedAgainForTheNext) {
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

TEST_F(Mmap, AnInterruptedReservationIsRepeated) {
  resize(65536);
  answers.fallocate_interruptions = 3;
  auto file = open();
  const Lease lease = file->lease({0, 65536}).value();
  EXPECT_TRUE(is_mapped());
  EXPECT_EQ(answers.fallocate_interruptions, 0);
  file->submit(lease, {});
}

TEST_F(Mmap, AFileSizeLimitGivesFileTooLargeAndTheExactPrefix) {
  put(counting_bytes(8192));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 10'000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  auto file = open();
  const auto inside = write(*file, {0, 8192}, {{0, 8192}}, kX);
  const auto fault = write(*file, {8192, 20'480}, {{8192, 20'480}}, kX);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(inside);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->error.error_class, ErrorClass::file_too_large);
  EXPECT_EQ(fault->first_missing, 10'000);
  EXPECT_EQ(file_.contents(), Bytes(10'000, kX));
}

// In /dev/shm, which every user may enter.
class MmapOfAnothersFile : public Mmap {
 protected:
  MmapOfAnothersFile() : Mmap("/dev/shm") {}
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

// A disk that fills: a tmpfs of 64 KiB, mounted for one test.
class MmapOnATinyDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    answers = {};
    if (::geteuid() != 0) GTEST_SKIP() << "mounting a tmpfs needs root";
    ASSERT_NE(::mkdtemp(directory_.data()), nullptr);
    if (::mount("tmpfs", directory_.c_str(), "tmpfs", 0, "size=64k") != 0)
      GTEST_SKIP() << "mounting a tmpfs is refused here: " << std::strerror(errno);
    mounted_ = true;
  }
  void TearDown() override {
    if (mounted_) ::umount(directory_.c_str());
    ::rmdir(directory_.c_str());
  }
  std::string directory_ = ::testing::TempDir() + "penstock-tiny-XXXXXX";
  bool mounted_ = false;
};

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
}  // namespace penstock::io::mmap_test
