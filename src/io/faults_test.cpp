// Where the kernel says no: short writes, EINTR, zero returns, full disks, file size limits,
// failing fsync and close. This program defines pwrite and friends itself, so that the calls of the
// layer under test meet what a test has prepared.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <thread>

#include "base/file_limit_for_tests.hpp"
#include "io/descriptor.hpp"
#include "io/faulty.hpp"
#include "io/sync_policy.hpp"
#include "io/temporary_file.hpp"
#include "io/tiny_disk.hpp"
#include "io/write_fully.hpp"

namespace {

// What the next calls meet. Reset by each test's Interposed.
struct Interposition {
  ssize_t (*pwrite)(int, const void*, size_t, off_t) = nullptr;
  int fsync_errno = 0, close_errno = 0;
  int calls = 0;
} interposed;
std::atomic<int> fsyncs = 0;  // other suites of this program sync in several threads

ssize_t real_pwrite(int fd, const void* data, size_t n, off_t at) {
  return ::syscall(SYS_pwrite64, fd, data, n, at);
}

int fail_with(int sys_errno) {
  errno = sys_errno;
  return -1;
}

}  // namespace

extern "C" {
ssize_t pwrite(int fd, const void* data, size_t n, off_t at) {
  if (interposed.pwrite == nullptr) return real_pwrite(fd, data, n, at);
  ++interposed.calls;
  return interposed.pwrite(fd, data, n, at);
}

int fsync(int fd) {
  ++fsyncs;
  if (interposed.fsync_errno != 0) return fail_with(interposed.fsync_errno);
  return int(::syscall(SYS_fsync, fd));
}

int close(int fd) {
  const int closed = int(::syscall(SYS_close, fd));
  if (interposed.close_errno != 0) return fail_with(interposed.close_errno);
  return closed;
}
}

namespace penstock::io::faults_test {
namespace {

using Bytes = std::vector<std::byte>;

Bytes counting_bytes(size_t n) {
  Bytes b(n);
  for (size_t i = 0; i < n; ++i) b[i] = std::byte(i * 7 + i / 256);
  return b;
}

class IoFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    interposed = {};
    fsyncs = 0;
  }
  void TearDown() override { interposed = {}; }

  std::optional<Fault> write(const Bytes& data, Off offset = 0) {
    const int fd = ::open(file_.path().c_str(), O_WRONLY | O_CLOEXEC);
    auto fault = write_fully(fd, data, offset, file_.path());
    interposed.pwrite = nullptr;
    ::close(fd);
    return fault;
  }

  std::unique_ptr<MechanismFile> open() {
    return find_mechanism("pwrite")->open({.path = file_.path()}).value();
  }

  TemporaryFile file_;
};

TEST_F(IoFaults, ShortWritesAreContinuedWhereTheyStopped) {
  interposed.pwrite = [](int fd, const void* d, size_t n, off_t at) {
    return real_pwrite(fd, d, std::min<size_t>(n, 1000), at);
  };
  const Bytes data = counting_bytes(10'001);
  EXPECT_FALSE(write(data));
  EXPECT_EQ(interposed.calls, 11);
  EXPECT_EQ(file_.contents(), data);
}

TEST_F(IoFaults, AnInterruptedWriteIsRepeated) {
  interposed.pwrite = [](int fd, const void* d, size_t n, off_t at) -> ssize_t {
    if (interposed.calls % 2 == 1) return fail_with(EINTR);
    return real_pwrite(fd, d, std::min<size_t>(n, 3000), at);
  };
  const Bytes data = counting_bytes(9'000);
  EXPECT_FALSE(write(data));
  EXPECT_EQ(interposed.calls, 6);
  EXPECT_EQ(file_.contents(), data);
}

TEST_F(IoFaults, AWriteThatReturnsZeroIsAnErrorNotALoop) {
  interposed.pwrite = [](int, const void*, size_t, off_t) -> ssize_t { return 0; };
  const auto fault = write(counting_bytes(10), 100);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->error.error_class, ErrorClass::io);
  EXPECT_EQ(fault->first_missing, 100);
  EXPECT_EQ(interposed.calls, 1);
}

TEST_F(IoFaults, AnErrorAfterPartOfTheBytesNamesTheFirstMissingOne) {
  interposed.pwrite = [](int fd, const void* d, size_t, off_t at) -> ssize_t {
    if (interposed.calls == 3) return fail_with(ENOSPC);
    return real_pwrite(fd, d, 1000, at);
  };
  const Bytes data = counting_bytes(5'000);
  const auto fault = write(data, 50);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->error.error_class, ErrorClass::no_space);
  EXPECT_EQ(fault->error.sys_errno, ENOSPC);
  EXPECT_EQ(fault->first_missing, 2050);
  EXPECT_NE(fault->error.message().find("offset 2050"), std::string::npos);
  EXPECT_EQ(file_.contents().size(), 2050u);
}

TEST_F(IoFaults, EveryErrnoComesThroughWithItsClass) {
  static int chosen;
  for (const int e : {EIO, ENOSPC, EDQUOT, EFBIG, EROFS, EACCES, ENOMEM}) {
    chosen = e;
    interposed.pwrite = [](int, const void*, size_t, off_t) -> ssize_t {
      return fail_with(chosen);
    };
    const auto fault = write(counting_bytes(1));
    ASSERT_TRUE(fault);
    EXPECT_EQ(fault->error.error_class, class_of_errno(e));
  }
}

TEST_F(IoFaults, AFaultDoesNotSpoilLaterSubmissions) {
  auto file = open();
  interposed.pwrite = [](int, const void*, size_t, off_t) -> ssize_t { return fail_with(EIO); };
  const Extent e{0, 4096};
  file->submit(file->lease(e).value(), {&e, 1});
  const auto fault = file->reap();
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->first_missing, 0);
  interposed.pwrite = nullptr;
  for (int i = 0; i < 5; ++i) {
    file->submit(file->lease(e).value(), {&e, 1});
    EXPECT_FALSE(file->reap());
  }
  EXPECT_EQ(file_.contents().size(), 4096u);
}

TEST_F(IoFaults, EachSubmissionReportsItsOwnFault) {
  auto file = open();
  interposed.pwrite = [](int fd, const void* d, size_t n, off_t at) -> ssize_t {
    return at < 4096 ? fail_with(EIO) : real_pwrite(fd, d, n, at);
  };
  const Extent first{0, 4096}, second{4096, 8192};
  file->submit(file->lease(first).value(), {&first, 1});
  file->submit(file->lease(second).value(), {&second, 1});
  EXPECT_TRUE(file->reap());
  EXPECT_FALSE(file->reap());
}

TEST_F(IoFaults, OfSeveralExtentsTheFirstMissingByteIsInFileOrder) {
  auto file = open();
  interposed.pwrite = [](int fd, const void* d, size_t n, off_t at) -> ssize_t {
    return at >= 8192 ? fail_with(ENOSPC) : real_pwrite(fd, d, n, at);
  };
  const Extent dirty[] = {{0, 4096}, {8192, 8200}, {9000, 9001}};
  file->submit(file->lease({0, 12288}).value(), dirty);
  const auto fault = file->reap();
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->first_missing, 8192);
  EXPECT_EQ(interposed.calls, 2) << "nothing is written behind the first fault";
}

TEST_F(IoFaults, AFailingSyncIsReportedOnceAndNotRepeated) {
  auto file = open();
  interposed.fsync_errno = EIO;
  const auto synced = find_sync_policy("end")->open(*file, {})->at_close();
  ASSERT_FALSE(synced);
  EXPECT_EQ(synced.error().error_class, ErrorClass::io);
  EXPECT_EQ(fsyncs, 1) << "a second fsync would say success about lost pages";
}

TEST_F(IoFaults, SyncNoneAsksTheDeviceForNothing) {
  auto file = open();
  EXPECT_TRUE(find_sync_policy("none")->open(*file, {})->at_close());
  EXPECT_EQ(fsyncs, 0);
}

TEST_F(IoFaults, AFailingCloseIsReportedOnce) {
  auto file = open();
  interposed.close_errno = EDQUOT;
  const auto closed = file->close();
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().error_class, ErrorClass::quota);
  EXPECT_TRUE(file->close());
}

TEST_F(IoFaults, AnInterruptedCloseIsASuccess) {
  auto file = open();
  interposed.close_errno = EINTR;
  EXPECT_TRUE(file->close());
}

// ---- direct writes, and the page cache where they are refused

int direct_calls = 0;

class DirectFaults : public IoFaults {
 protected:
  void SetUp() override {
    IoFaults::SetUp();
    direct_calls = 0;
    file = find_mechanism("pwrite")->open({.path = file_.path(), .direct = Direct::always}).value();
    if (!file->degraded().empty()) GTEST_SKIP() << file->degraded();
  }

  // Whether a call is for the descriptor with O_DIRECT; counts them.
  static bool is_direct(int fd) {
    if ((::fcntl(fd, F_GETFL) & O_DIRECT) == 0) return false;
    ++direct_calls;
    return true;
  }

  std::optional<Fault> write_page(Extent where, const Bytes& data) {
    const Lease lease = file->lease(where).value();
    std::copy_n(data.begin() + where.begin, where.size(), lease.memory.begin());
    file->submit(lease, {&where, 1});
    return file->reap();
  }

  std::unique_ptr<MechanismFile> file;
};

// As a program does that maps the file and stores there, or another handle: its page, which has
// what the file had, is dirty when the direct write ends.
int buffered_fd = -1;

TEST_F(DirectFaults, APageThatIsDirtyAfterwardsIsWrittenAgainAndNothingGoesPastTheCacheAnyMore) {
  auto cold = find_mechanism("pwrite")
                  ->open({.path = file_.path(), .direct = Direct::when_cold, .cold = kAlwaysCold})
                  .value();
  const Bytes data = counting_bytes(300'000);
  const std::span<const std::byte> all(data);
  EXPECT_FALSE(cold->write(all.first(4096), 0));  // now memory is cold
  buffered_fd = cold->fd();
  interposed.pwrite = [](int fd, const void* d, size_t n, off_t at) {
    const ssize_t written = real_pwrite(fd, d, n, at);
    if (is_direct(fd)) EXPECT_EQ(real_pwrite(buffered_fd, Bytes(4096).data(), 4096, at), 4096);
    return written;
  };
  EXPECT_FALSE(cold->write(all.subspan(4096, 100'000), 4096));
  EXPECT_EQ(direct_calls, 1);
  EXPECT_FALSE(cold->write(all.subspan(104'096), 104'096));
  EXPECT_EQ(direct_calls, 1);
  EXPECT_EQ(cold->cold_bytes(), 0);
  EXPECT_TRUE(cold->close());
  EXPECT_EQ(file_.contents(), data);
}

TEST_F(DirectFaults, AnAlignedWriteThatIsRefusedIsBufferedAndSoAreAllBehindIt) {
  interposed.pwrite = [](int fd, const void* d, size_t n, off_t at) {
    return is_direct(fd) ? fail_with(EINVAL) : real_pwrite(fd, d, n, at);
  };
  const Bytes data = counting_bytes(100'000);
  EXPECT_FALSE(write_page({0, 50'000}, data));
  EXPECT_EQ(direct_calls, 1);
  EXPECT_NE(file->degraded().find("a write of whole units was refused"), std::string::npos);
  EXPECT_FALSE(write_page({50'000, 100'000}, data));
  EXPECT_EQ(direct_calls, 1);
  EXPECT_EQ(file_.contents(), data);
}

// The rank's own thread writes pages that others filled, through the page cache, while a lease's
// bytes are refused.
TEST_F(DirectFaults, AWriteThatIsRefusedBesideAnotherThreadsIsBuffered) {
  static MechanismFile* shared;
  static const Bytes data = counting_bytes(100'000);
  static constexpr Extent kBeside{50'000, 100'000};
  shared = file.get();
  static const auto write_beside = [] {
    const auto bytes = std::as_bytes(std::span(data)).subspan(size_t(kBeside.begin));
    EXPECT_FALSE(shared->write_extents({kBeside, bytes}, {&kBeside, 1}));
  };
  interposed.pwrite = [](int fd, const void* d, size_t n, off_t at) -> ssize_t {
    if (!is_direct(fd)) return real_pwrite(fd, d, n, at);
    if (direct_calls == 1) std::thread(write_beside).join();
    return fail_with(EINVAL);
  };
  EXPECT_FALSE(write_page({0, 50'000}, data));
  EXPECT_EQ(direct_calls, 1);
  EXPECT_EQ(file_.contents(), data);
}

// Interrupted, then short at a place that is not aligned: the rest cannot be written directly.
TEST_F(DirectFaults, AShortOrInterruptedWriteGoesOnAndIsNoRefusal) {
  interposed.pwrite = [](int fd, const void* d, size_t n, off_t at) -> ssize_t {
    if (!is_direct(fd) || direct_calls > 2) return real_pwrite(fd, d, n, at);
    if (direct_calls == 1) return fail_with(EINTR);
    return real_pwrite(fd, d, 4096, at) == 4096 ? 1000 : fail_with(EIO);
  };
  const Bytes data = counting_bytes(100'000);
  EXPECT_FALSE(write_page({0, 100'000}, data));
  EXPECT_EQ(direct_calls, 3);
  EXPECT_EQ(file->degraded(), "");
  EXPECT_EQ(file_.contents(), data);
}

TEST_F(DirectFaults, AFullDiskIsNoRefusalEither) {
  interposed.pwrite = [](int fd, const void* d, size_t n, off_t at) {
    return is_direct(fd) ? fail_with(ENOSPC) : real_pwrite(fd, d, n, at);
  };
  const auto fault = write_page({100, 50'000}, counting_bytes(50'000));
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->error.error_class, ErrorClass::no_space);
  EXPECT_EQ(fault->first_missing, 4096);
  EXPECT_EQ(file->degraded(), "");
}

// ---- the kernel itself

TEST_F(IoFaults, AFileSizeLimitGivesFileTooLargeAndTheExactPrefix) {
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  std::optional<LargestFile> limit(std::in_place, 10'000);
  const Bytes data = counting_bytes(20'000);
  const auto fault = write(data);
  limit.reset();
  std::signal(SIGXFSZ, handler);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->error.error_class, ErrorClass::file_too_large);
  EXPECT_EQ(fault->first_missing, 10'000);
  EXPECT_EQ(file_.contents(), Bytes(data.begin(), data.begin() + 10'000));
}

class TinyDisk : public OnATinyDisk<IoFaults> {};

TEST_F(TinyDisk, SaysNoSpaceAndEveryByteBeforeTheFirstMissingOneIsThere) {
  const TemporaryFile target(directory_);
  auto file = find_mechanism("pwrite")->open({.path = target.path()}).value();
  const Bytes data = counting_bytes(200'000);
  const auto fault = file->write(data, 0);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->error.error_class, ErrorClass::no_space);
  EXPECT_GT(fault->first_missing, 0);
  EXPECT_LE(fault->first_missing, 65536);
  const Bytes got = target.contents();
  ASSERT_GE(Off(got.size()), fault->first_missing);
  EXPECT_TRUE(std::equal(got.begin(), got.begin() + fault->first_missing, data.begin()));
  EXPECT_TRUE(file->close());
}

// ---- FaultyFile, on which the tests of other layers rely

class Faulty : public IoFaults {
 protected:
  FaultyFile with(const FaultPlan& plan) { return {open(), plan}; }

  std::optional<Fault> submit(FaultyFile& file, Extent where, std::vector<Extent> dirty) {
    auto lease = file.lease(where).value();
    const Bytes data = counting_bytes(size_t(where.end));
    std::copy(data.begin() + where.begin, data.end(), lease.memory.begin());
    file.submit(lease, dirty);
    return file.reap();
  }
};

TEST_F(Faulty, FailsTheNthWriteAndLetsItsFirstBytesIn) {
  FaultyFile file = with({.nth_write = 2, .bytes_before_fault = 10, .write_errno = ENOSPC});
  const auto fault = submit(file, {0, 4096}, {{0, 100}, {200, 300}, {400, 500}});
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->first_missing, 210);
  EXPECT_EQ(fault->error.error_class, ErrorClass::no_space);
  EXPECT_EQ(file_.contents().size(), 210u);
  EXPECT_FALSE(submit(file, {0, 4096}, {{0, 4096}}));
  EXPECT_EQ(file_.contents(), counting_bytes(4096));
}

TEST_F(Faulty, FailsEveryWriteThatTouchesAByte) {
  FaultyFile file = with({.at_offset = 250, .write_errno = EIO});
  for (int i = 0; i < 5; ++i) {
    const auto fault = submit(file, {0, 4096}, {{0, 100}, {200, 300}});
    ASSERT_TRUE(fault);
    EXPECT_EQ(fault->first_missing, 250);
  }
  EXPECT_FALSE(file.write(counting_bytes(250), 0));
  EXPECT_EQ(file.write(counting_bytes(251), 0)->first_missing, 250);
}

TEST_F(Faulty, FailsAtTheVeryFirstByte) {
  FaultyFile file = with({.at_offset = 0, .write_errno = EIO});
  for (int i = 0; i < 5; ++i) {
    const auto fault = submit(file, {0, 100}, {{0, 100}});
    ASSERT_TRUE(fault) << "round " << i;
    EXPECT_EQ(fault->first_missing, 0);
  }
  EXPECT_TRUE(file_.contents().empty());
}

TEST_F(Faulty, FailsSyncAndCloseOnce) {
  FaultyFile file = with({.sync_errno = EIO, .close_errno = ENOSPC});
  EXPECT_EQ(file.sync(SyncKind::full).error().error_class, ErrorClass::io);
  EXPECT_EQ(file.close().error().error_class, ErrorClass::no_space);
  EXPECT_TRUE(file.close());
}

}  // namespace
}  // namespace penstock::io::faults_test
