// stream=BYTES: which ranges are started and when, a kernel that refuses, write-back that fails, a
// device that is slow. This program defines sync_file_range itself, so that a test sees the calls.
#include "io/stream_sync.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <mutex>
#include <thread>
#include <vector>

#include "io/eventually.hpp"
#include "io/recording_file.hpp"
#include "io/sync_habit.hpp"
#include "io/sync_policy.hpp"
#include "io/temporary_file.hpp"

namespace {

struct WriteBack {
  std::mutex mutex;  // policies are used by several threads
  std::vector<penstock::Extent> started;
  unsigned flags = 0;
  int fails_with = 0;              // 0: the kernel is asked
  std::atomic<bool> held = false;  // no call returns
  std::atomic<int> begun = 0;
} write_back;

}  // namespace

extern "C" int sync_file_range(int fd, off64_t at, off64_t n, unsigned flags) {
  ++write_back.begun;
  write_back.held.wait(true);
  const std::lock_guard lock(write_back.mutex);
  write_back.started.push_back({at, at + n});
  write_back.flags |= flags;
  if (write_back.fails_with == 0) return int(::syscall(SYS_sync_file_range, fd, at, n, flags));
  errno = write_back.fails_with;
  return -1;
}

namespace penstock::io::stream_sync_test {
namespace {

class StreamSyncs : public ::testing::Test {
 protected:
  void SetUp() override { reset(); }
  void TearDown() override { reset(); }

  static void reset() {
    write_back.started.clear();
    write_back.flags = 0;
    write_back.fails_with = 0;
    write_back.held = false;
    write_back.begun = 0;
  }
  // Without a thread the writer itself starts write-back, at once: what happens is certain.
  static std::unique_ptr<FileSync> stream(MechanismFile& file, int64_t bytes) {
    return policy(file, bytes, StreamSync::Streams::always);
  }
  static std::unique_ptr<FileSync> policy(MechanismFile& file, int64_t bytes,
                                          StreamSync::Streams streams) {
    return std::make_unique<StreamSync>(file, bytes, streams, [](void* (*)(void*), void*) {
      return Result<pthread_t>(fail(ErrorClass::no_memory, "pthread_create", "none for tests"));
    });
  }
  static std::unique_ptr<FileSync> stream_behind(MechanismFile& file, int64_t bytes) {
    return find_sync_policy("stream")->open(file, {.bytes = bytes, .gate = nullptr});
  }

  // Returns, though the device does not.
  void close_while_slow() {
    const auto sync = stream_behind(file_, 100);
    write_back.held = true;
    EXPECT_TRUE(sync->wrote({0, 16 << 20}, 16 << 20));
    ASSERT_TRUE(eventually([] { return write_back.begun == 1; }));
    for (Off at = 16 << 20; at < 32 << 20; at += 1 << 20)
      EXPECT_TRUE(sync->wrote({at, at + (1 << 20)}, 1 << 20));
    std::jthread closer([&] { EXPECT_TRUE(sync->at_close()); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    write_back.held = false;
    write_back.held.notify_all();
    closer.join();
  }

  TemporaryFile path_;
  SyncRecord record_;
  RecordingFile file_{find_mechanism("pwrite")->open({.path = path_.path()}).value(), record_};
};

TEST_F(StreamSyncs, StartWriteBackOfWhatCameTogetherAndSyncNothing) {
  const auto sync = stream(file_, 4096);
  for (Off at = 0; at < 10 * 2048; at += 2048) {
    const auto pushed = sync->wrote({at, at + 1024}, 1024);
    ASSERT_TRUE(pushed);
    EXPECT_FALSE(*pushed) << "nothing is on the device for certain";
  }
  EXPECT_EQ(write_back.started, (std::vector<Extent>{{0, 7168}, {8192, 15360}}));
  EXPECT_EQ(write_back.flags, unsigned(SYNC_FILE_RANGE_WRITE)) << "it waits for nothing";
  EXPECT_TRUE(sync->at_close());
  EXPECT_EQ(record_.data + record_.full, 0);
  EXPECT_TRUE(sync->sync(SyncKind::full));
  EXPECT_EQ(record_.full, 1);
  EXPECT_EQ(sync->notes().syncs_behind, 0);
}

TEST_F(StreamSyncs, BytesThatCameFromTheEndOfTheFileToItsBeginningAreOneRange) {
  const auto sync = stream(file_, 3);
  for (const Off at : {900, 500, 100}) EXPECT_TRUE(sync->wrote({at, at + 1}, 1));
  EXPECT_EQ(write_back.started, (std::vector<Extent>{{100, 901}}));
}

TEST_F(StreamSyncs, AKernelThatRefusesIsAskedOnceAndTheLogSaysSo) {
  for (const int refusal : {ESPIPE, EINVAL, ENOSYS, EOPNOTSUPP, EPERM}) {
    reset();
    write_back.fails_with = refusal;
    const auto sync = stream(file_, 100);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(sync->wrote({0, 100}, 100).value(), false);
    EXPECT_EQ(write_back.started.size(), 1u) << refusal;
    EXPECT_NE(sync->notes().degraded.find("sync_file_range"), std::string::npos);
    EXPECT_TRUE(sync->sync(SyncKind::full));
    EXPECT_TRUE(sync->at_close());
  }
}

// The pages are dirty still, and what comes of them a sync tells.
TEST_F(StreamSyncs, WhatTheKernelCannotBeginJustNowIsNoLoss) {
  for (const int passing : {ENOMEM, EAGAIN}) {
    reset();
    write_back.fails_with = passing;
    const auto sync = stream(file_, 100);
    EXPECT_TRUE(sync->wrote({0, 100}, 100)) << passing;
    write_back.fails_with = 0;
    EXPECT_TRUE(sync->wrote({100, 200}, 100));
    EXPECT_EQ(write_back.started.size(), 2u);
    EXPECT_TRUE(sync->sync(SyncKind::full));
    EXPECT_TRUE(sync->at_close());
    EXPECT_EQ(sync->notes().degraded.find("sync_file_range"), std::string::npos);
  }
}

TEST_F(StreamSyncs, WriteBackThatFailsIsToldAtOnceAndBySyncAndCloseForEver) {
  write_back.fails_with = ENOSPC;
  const auto sync = stream(file_, 100);
  const auto failed = sync->wrote({0, 100}, 100);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().error_class, ErrorClass::no_space);
  EXPECT_NE(failed.error().message().find("after every 100"), std::string::npos);
  write_back.fails_with = 0;
  EXPECT_TRUE(sync->wrote({100, 200}, 100)) << "later writes are tried anew";
  EXPECT_EQ(write_back.started.size(), 2u);
  for (int again = 0; again < 2; ++again) EXPECT_FALSE(sync->sync(SyncKind::full));
  EXPECT_FALSE(sync->at_close());
  EXPECT_EQ(record_.full, 2) << "what is not lost is still pushed";
}

TEST_F(StreamSyncs, ThreadsCountTogether) {
  const auto sync = stream(file_, 4096);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      for (Off i = 0; i < 100; ++i) EXPECT_TRUE(sync->wrote({i, i + 1024}, 1024));
    });
  threads.clear();
  EXPECT_FALSE(write_back.started.empty());
  EXPECT_LE(write_back.started.size(), 200u) << "one for each write at most";
}

TEST_F(StreamSyncs, NoThreadIsInTheLog) {
  const auto sync = stream(file_, 100);
  EXPECT_EQ(sync->notes().degraded, "") << "nobody asked for one";
  EXPECT_TRUE(sync->wrote({0, 100}, 100));
  EXPECT_NE(sync->notes().degraded.find("none for tests"), std::string::npos);
}

TEST_F(StreamSyncs, LongRangesGoInPieces) {
  const auto sync = stream(file_, 100);
  EXPECT_TRUE(sync->wrote({0, 5 << 19}, 5 << 19));
  EXPECT_EQ(write_back.started,
            (std::vector<Extent>{{0, 1 << 20}, {1 << 20, 2 << 20}, {2 << 20, 5 << 19}}));
  write_back.started.clear();
  EXPECT_TRUE(stream(file_, 3 << 20)->wrote({0, 4 << 20}, 4 << 20));
  EXPECT_EQ(write_back.started, (std::vector<Extent>{{0, 3 << 20}, {3 << 20, 4 << 20}}))
      << "of as much as somebody asked for";
}

// What is not due yet is what the thread has not come to.
TEST_F(StreamSyncs, ASyncStartsTheRestInPiecesAndTellsWhatItLost) {
  const auto sync = stream(file_, 100 << 20);
  EXPECT_TRUE(sync->wrote({0, 6 << 20}, 6 << 20));
  ASSERT_TRUE(write_back.started.empty());
  EXPECT_TRUE(sync->sync(SyncKind::full));
  EXPECT_EQ(write_back.started, (std::vector<Extent>{{0, 4 << 20}, {4 << 20, 6 << 20}}));
  EXPECT_EQ(record_.full, 1) << "what was only started is not on the device";
  EXPECT_TRUE(sync->wrote({6 << 20, 7 << 20}, 1 << 20));
  write_back.fails_with = EIO;
  EXPECT_FALSE(sync->sync(SyncKind::full));
  EXPECT_EQ(record_.full, 2) << "what is not lost is still pushed";
  EXPECT_FALSE(sync->at_close());
}

TEST_F(StreamSyncs, ASyncLeavesARangeThatIsMostlyOthersOrHoles) {
  const auto sync = stream(file_, 100 << 20);
  EXPECT_TRUE(sync->wrote({0, 1 << 20}, 1 << 20));
  EXPECT_TRUE(sync->wrote({Off{1} << 29, (Off{1} << 29) + 100}, 100));
  EXPECT_TRUE(sync->sync(SyncKind::full));
  EXPECT_TRUE(write_back.started.empty()) << "five hundred calls for two pieces";
  EXPECT_TRUE(sync->wrote({0, 100}, 100)) << "and begins anew";
  EXPECT_TRUE(sync->sync(SyncKind::full));
  EXPECT_EQ(write_back.started, (std::vector<Extent>{{0, 100}}));
}

TEST_F(StreamSyncs, NobodyGoesOverAHugeHolePieceByPiece) {
  constexpr Off kThere = Off{1} << 60;
  const auto sync = stream(file_, 100);
  EXPECT_TRUE(sync->wrote({0, 50}, 50));
  EXPECT_TRUE(sync->wrote({kThere, kThere + 50}, 50));
  EXPECT_EQ(write_back.started, (std::vector<Extent>{{kThere, kThere + 50}}));
  EXPECT_TRUE(sync->wrote({0, 100}, 100)) << "and back";
  EXPECT_EQ(write_back.started.back(), (Extent{0, 100}));
}

TEST_F(StreamSyncs, NorOverAPageWhosePiecesLieFarApart) {
  const auto sync = stream(file_, 100);
  EXPECT_TRUE(sync->wrote({0, Off{1} << 50}, 200));
  EXPECT_TRUE(write_back.started.empty());
  EXPECT_TRUE(sync->wrote({500, 700}, 200));
  EXPECT_EQ(write_back.started, (std::vector<Extent>{{500, 700}}));
  const Extent two_ranks{0, (Off{1} << 30) + (8 << 20)};  // each its part, from beginning to end
  EXPECT_TRUE(sync->wrote(two_ranks, 16 << 20));
  EXPECT_EQ(write_back.started.back().end, two_ranks.end);
}

TEST_F(StreamSyncs, AWriterDoesNotWaitForASlowDeviceAndCloseForOnePieceAtMost) {
  for (int tries = 0; tries < 20; ++tries) {  // a busy machine may let close come too late
    reset();
    close_while_slow();
    if (write_back.begun <= 3) return;
  }
  FAIL() << "what close found waiting is left to the kernel";
}

TEST_F(StreamSyncs, TheThreadStartsAllThatIsDueInTheEnd) {
  const auto sync = stream_behind(file_, 4096);
  for (Off at = 0; at < 64 * 1024; at += 1024) EXPECT_TRUE(sync->wrote({at, at + 1024}, 1024));
  EXPECT_TRUE(eventually([] {
    const std::lock_guard lock(write_back.mutex);
    return !write_back.started.empty() && write_back.started.back().end == 64 * 1024;
  }));
  EXPECT_EQ(sync->notes().degraded, "");
  EXPECT_TRUE(sync->at_close());
  Off end = 0;
  for (const Extent e : write_back.started) {
    EXPECT_EQ(e.begin, end) << "no gap, and nothing twice";
    end = e.end;
  }
}

TEST_F(StreamSyncs, AFailureOfTheThreadIsToldByTheNextWriteOnce) {
  write_back.fails_with = EIO;
  const auto sync = stream_behind(file_, 100);
  (void)sync->wrote({0, 100}, 100);
  ASSERT_TRUE(eventually([] {
    const std::lock_guard lock(write_back.mutex);
    return !write_back.started.empty();
  }));
  EXPECT_TRUE(eventually([&] { return !sync->wrote({100, 101}, 1); }));
  EXPECT_TRUE(sync->wrote({101, 102}, 1));
  EXPECT_FALSE(sync->at_close());
}

// --- anticipate ---

class Anticipates : public StreamSyncs {
 protected:
  void SetUp() override {
    StreamSyncs::SetUp();
    forget_sync_habit();
  }
  void TearDown() override {
    forget_sync_habit();
    StreamSyncs::TearDown();
  }
  std::unique_ptr<FileSync> open() { return policy(file_, 100, StreamSync::Streams::if_it_syncs); }
  // Whether a write of a new file has its write-back started.
  bool starts() {
    write_back.started.clear();
    const auto sync = open();
    EXPECT_TRUE(sync->wrote({0, 100}, 100));
    const bool started = !write_back.started.empty();
    EXPECT_TRUE(sync->sync(SyncKind::full));
    EXPECT_TRUE(sync->at_close());
    return started;
  }
};

TEST_F(Anticipates, NothingWhereNothingIsKnown) { EXPECT_FALSE(starts()); }

TEST_F(Anticipates, ASyncThatNobodyExpectedStartsNothing) {
  const auto sync = open();
  EXPECT_TRUE(sync->wrote({0, 100}, 100));
  EXPECT_TRUE(sync->sync(SyncKind::full));
  EXPECT_TRUE(write_back.started.empty());
}

TEST_F(Anticipates, AsTheProgramIsLinked) {
  expect_syncs(true);
  EXPECT_TRUE(starts());
  forget_sync_habit();
  expect_syncs(false);
  EXPECT_FALSE(starts());
}

TEST_F(Anticipates, WhatItDoesCountsForMoreThanWhatItIsLinkedTo) {
  expect_syncs(true);
  {
    const auto sync = open();
    EXPECT_TRUE(sync->wrote({0, 100}, 100));
    EXPECT_TRUE(sync->at_close());
  }
  EXPECT_FALSE(starts()) << "the last file was closed without a sync";
  EXPECT_TRUE(starts()) << "the one before was synced";
}

TEST_F(Anticipates, AFileThatNobodyWroteSaysNothing) {
  expect_syncs(true);
  EXPECT_TRUE(open()->at_close());
  EXPECT_TRUE(starts());
}

// Others write beside them, on the same memory pages.
TEST_F(Anticipates, NothingForShortPiecesAndAllForLongRuns) {
  constexpr Off kPiece = 4 << 10, kRun = 16 << 10, kEvery = 64 << 10;
  expect_syncs(true);
  const auto sync = policy(file_, kEvery, StreamSync::Streams::if_it_syncs);
  for (Off at = 0; at < 100 * kRun; at += kRun) EXPECT_TRUE(sync->wrote({at, at + kPiece}, kPiece));
  EXPECT_TRUE(write_back.started.empty()) << "pieces, each beside others'";
  const Off begin = 200 * kRun;
  for (Off at = begin; at < begin + 3 * kEvery; at += kPiece)
    EXPECT_TRUE(sync->wrote({at, at + kPiece}, kPiece));
  ASSERT_EQ(write_back.started.size(), 3U) << "pieces that follow each other";
  EXPECT_EQ(write_back.started[0].begin, begin) << "from the first of them on";
  EXPECT_EQ(write_back.started[1].begin, write_back.started[0].end) << "and nothing twice";
  const Off far = 400 * kRun;
  for (Off at = far; at < far + 8 * kRun; at += 2 * kRun)
    EXPECT_TRUE(sync->wrote({at, at + kRun}, kRun));
  EXPECT_EQ(write_back.started.back().end, far + 7 * kRun) << "long pieces, though not one run";
}

TEST_F(Anticipates, TheFirstSyncOfAFileStartsIt) {
  const auto sync = open();
  EXPECT_TRUE(sync->wrote({0, 100}, 100));
  EXPECT_TRUE(write_back.started.empty());
  EXPECT_TRUE(sync->sync(SyncKind::full));
  EXPECT_TRUE(sync->wrote({100, 200}, 100));
  EXPECT_EQ(write_back.started, (std::vector<Extent>{{100, 200}})) << "the rest was pushed";
}

TEST_F(StreamSyncs, AMechanismWithoutAFileIsLeftAlone) {
  const auto null = find_mechanism("null")->open({.path = path_.path()}).value();
  const auto sync = stream(*null, 1);
  EXPECT_EQ(sync->wrote({0, 100}, 100).value(), false);
  EXPECT_TRUE(write_back.started.empty());
  EXPECT_EQ(sync->notes().degraded, "");
}

}  // namespace
}  // namespace penstock::io::stream_sync_test
