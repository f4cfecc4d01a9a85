// every=BYTES, coordinated=BYTES and pulse=BYTES on one file: how often, one at a time, and what a
// failure leaves.
#include "io/periodic_sync.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "io/faulty.hpp"
#include "io/recording_file.hpp"
#include "io/temporary_file.hpp"

namespace penstock::io::periodic_sync_test {
namespace {

constexpr Extent kSomewhere{0, 1};  // how often does not depend on where

class MutexGate final : public Gate {
 public:
  Result<void> enter() override {
    mutex_.lock();
    return {};
  }
  void leave() noexcept override { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class ClosedGate final : public Gate {
 public:
  Result<void> enter() override {
    return os_error("pthread_mutex_lock", "a test", ENOTRECOVERABLE);
  }
  void leave() noexcept override { ADD_FAILURE() << "nobody was inside"; }
};

class PeriodicSyncs : public ::testing::Test {
 protected:
  std::unique_ptr<MechanismFile> open(const FaultPlan& faults = {}) {
    auto inner = find_mechanism("pwrite")->open({.path = file_.path()}).value();
    auto faulty = std::make_unique<FaultyFile>(std::move(inner), faults);
    return std::make_unique<RecordingFile>(std::move(faulty), record_);
  }

  TemporaryFile file_;
  SyncRecord record_;
};

// The number that devices without a sync give is one that a file's write-back may have left too.
TEST_F(PeriodicSyncs, OfAFileEveryNumberIsALoss) {
  const auto file = open({.sync_errno = EINVAL, .nth_sync = 2});
  PeriodicSync sync(*file, 4096, nullptr);
  EXPECT_TRUE(sync.wrote(kSomewhere, 4096).value());
  EXPECT_FALSE(sync.wrote(kSomewhere, 4096));
  EXPECT_FALSE(sync.sync(SyncKind::full)) << "it stays lost";
  EXPECT_FALSE(sync.at_close());
}

TEST_F(PeriodicSyncs, SyncsOnceForEachSoManyBytes) {
  const auto file = open();
  PeriodicSync sync(*file, 4096, nullptr);
  for (int i = 1; i <= 10; ++i) {
    const auto pushed = sync.wrote(kSomewhere, 1024);
    ASSERT_TRUE(pushed);
    EXPECT_EQ(*pushed, i % 4 == 0) << i;
  }
  EXPECT_EQ(record_.data, 2);
  EXPECT_EQ(record_.full, 0);
  EXPECT_TRUE(sync.at_close());
  EXPECT_EQ(record_.full, 1);
}

TEST_F(PeriodicSyncs, AWriteOfMoreThanSoManyBytesIsFollowedByOneSync) {
  const auto file = open();
  PeriodicSync sync(*file, 1000, nullptr);
  EXPECT_EQ(sync.wrote(kSomewhere, 999).value(), false);
  EXPECT_EQ(sync.wrote(kSomewhere, 5000).value(), true);
  EXPECT_EQ(sync.wrote(kSomewhere, 999).value(), false)
      << "what was left over is on the device too";
  EXPECT_EQ(record_.data, 1);
}

// How many syncs follow 42 KiB in writes of so many KiB.
int syncs_of(MechanismFile& file, SyncRecord& record, Beat beat, SyncKind kind, int64_t kib) {
  PeriodicSync sync(file, 7 * 1024, nullptr, beat, kind);
  record.data = record.full = 0;
  for (int64_t written = 0; written < 42; written += kib)
    EXPECT_TRUE(sync.wrote(kSomewhere, kib * 1024));
  return kind == SyncKind::data ? record.data : record.full;
}

TEST_F(PeriodicSyncs, APulseComesAtEachMultipleHoweverTheWritesAreCut) {
  const auto file = open();
  for (const int64_t kib : {1, 2, 3, 6, 7}) {
    EXPECT_EQ(syncs_of(*file, record_, Beat::in_step, SyncKind::full, kib), 6) << kib;
    EXPECT_EQ(record_.data, 0) << "an fsync, not an fdatasync";
  }
  EXPECT_EQ(syncs_of(*file, record_, Beat::anew, SyncKind::data, 3), 4) << "else it is every=BYTES";
}

TEST_F(PeriodicSyncs, APulseFollowsTheWriteThatPassesAMultiple) {
  const auto file = open();
  PeriodicSync sync(*file, 1000, nullptr, Beat::in_step, SyncKind::full);
  EXPECT_EQ(sync.wrote(kSomewhere, 999).value(), false);
  EXPECT_EQ(sync.wrote(kSomewhere, 5900).value(), true) << "once, for six of them";
  EXPECT_EQ(sync.wrote(kSomewhere, 100).value(), false) << "6999";
  EXPECT_EQ(sync.wrote(kSomewhere, 1).value(), true) << "7000";
  EXPECT_EQ(record_.full, 2);
}

TEST_F(PeriodicSyncs, AFailureIsToldAtOnceAndBySyncAndCloseForEver) {
  const auto file = open({.sync_errno = ENOSPC, .nth_sync = 2});
  PeriodicSync sync(*file, 4096, nullptr);
  EXPECT_TRUE(sync.wrote(kSomewhere, 4096).value());
  const auto failed = sync.wrote(kSomewhere, 4096);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().error_class, ErrorClass::no_space);
  EXPECT_NE(failed.error().message().find("after every 4KiB"), std::string::npos);
  EXPECT_TRUE(sync.wrote(kSomewhere, 4096).value()) << "later writes are tried anew";
  for (int again = 0; again < 2; ++again)
    EXPECT_EQ(sync.sync(SyncKind::full).error().error_class, ErrorClass::no_space);
  EXPECT_EQ(sync.at_close().error().error_class, ErrorClass::no_space);
  EXPECT_EQ(record_.full, 3) << "what is not lost is still pushed";
}

TEST_F(PeriodicSyncs, ASyncThatTheProgramAskedForIsToldByThoseBehindItToo) {
  const auto file = open({.sync_errno = EIO, .nth_sync = 1});
  PeriodicSync sync(*file, 4096, nullptr);
  for (int again = 0; again < 2; ++again)
    EXPECT_EQ(sync.sync(SyncKind::full).error().error_class, ErrorClass::io);
  EXPECT_FALSE(sync.at_close());
}

TEST_F(PeriodicSyncs, ThreadsCountTogether) {
  const auto file = open();
  PeriodicSync sync(*file, 4096, nullptr);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) EXPECT_TRUE(sync.wrote(kSomewhere, 1024));
    });
  threads.clear();
  EXPECT_EQ(record_.data, 50);
}

// How often two files that share `gate` are synced by a thread each.
void sync_often(MechanismFile& a, MechanismFile& b, const std::shared_ptr<Gate>& gate) {
  std::vector<std::jthread> threads;
  for (MechanismFile* file : {&a, &b})
    threads.emplace_back([file, gate] {
      PeriodicSync sync(*file, 1, gate);
      for (int i = 0; i < 100; ++i) EXPECT_TRUE(sync.wrote(kSomewhere, 1).value());
      EXPECT_TRUE(sync.sync(SyncKind::full));
      EXPECT_TRUE(sync.at_close());
    });
}

TEST_F(PeriodicSyncs, ThatShareAGateAreNeverTwoAtATime) {
  const auto a = open(), b = open();
  sync_often(*a, *b, std::make_shared<MutexGate>());
  EXPECT_EQ(record_.data, 200);
  EXPECT_EQ(record_.full, 4);
  EXPECT_FALSE(record_.crowded);
}

TEST_F(PeriodicSyncs, WithoutAGateDoNotWaitForEachOther) {
  const auto a = open(), b = open();
  for (int tries = 0; tries < 20 && !record_.crowded; ++tries) sync_often(*a, *b, nullptr);
  EXPECT_TRUE(record_.crowded) << "else the test above shows nothing";
}

// Who is inside stays at the door until another thread's sync is over, or for a while.
class LingeringGate final : public Gate {
 public:
  Result<void> enter() override { return {}; }
  void leave() noexcept override {
    if (left_++ > 0) return;
    leaving.open();
    other_is_over.wait_for(std::chrono::milliseconds(200));
  }
  class Flag {
   public:
    void open() {
      const std::lock_guard lock(mutex_);
      open_ = true;
      changed_.notify_all();
    }
    void wait_for(std::chrono::milliseconds most) {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, most, [this] { return open_; });
    }

   private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool open_ = false;
  };
  Flag leaving, other_is_over;

 private:
  std::atomic<int> left_ = 0;
};

// The kernel tells a failure once: here to the periodic sync of another thread.
TEST_F(PeriodicSyncs, ASyncKnowsWhatThatOfAnotherThreadHasLost) {
  const auto file = open({.sync_errno = EIO, .nth_sync = 1});
  const auto gate = std::make_shared<LingeringGate>();
  PeriodicSync sync(*file, 1, gate);
  const std::jthread writer([&] { EXPECT_FALSE(sync.wrote(kSomewhere, 1)); });
  gate->leaving.wait_for(std::chrono::seconds(60));
  EXPECT_FALSE(sync.sync(SyncKind::full));
  gate->other_is_over.open();
}

TEST_F(PeriodicSyncs, AGateThatCannotBeEnteredIsAFailedSync) {
  const auto file = open();
  PeriodicSync sync(*file, 1, std::make_shared<ClosedGate>());
  EXPECT_FALSE(sync.wrote(kSomewhere, 1));
  EXPECT_FALSE(sync.at_close());
  EXPECT_EQ(record_.data + record_.full, 0);
}

}  // namespace
}  // namespace penstock::io::periodic_sync_test
