// background=BYTES: writers that do not wait, whom a failure is told, a thread that cannot be had,
// and that all is over before the file is closed.
#include "io/background_sync.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <thread>

#include "io/eventually.hpp"
#include "io/faulty.hpp"
#include "io/recording_file.hpp"
#include "io/temporary_file.hpp"

namespace penstock::io::background_sync_test {
namespace {

constexpr Extent kSomewhere{0, 1};  // how often does not depend on where

// A door that the device's side of an fdatasync waits at.
class Door {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void await_somebody() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_ > 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool open_ = false;
};

class SlowFile final : public RecordingFile {
 public:
  SlowFile(std::unique_ptr<MechanismFile> inner, SyncRecord& record, Door& door)
      : RecordingFile(std::move(inner), record), door_(door) {}

  Result<void> sync(SyncKind kind) override {
    if (kind == SyncKind::data) door_.pass();
    return RecordingFile::sync(kind);
  }

 private:
  Door& door_;
};

class BackgroundSyncs : public ::testing::Test {
 protected:
  std::unique_ptr<MechanismFile> plain(const FaultPlan& faults = {}) {
    return std::make_unique<FaultyFile>(
        find_mechanism("pwrite")->open({.path = path_.path()}).value(), faults);
  }
  std::unique_ptr<MechanismFile> open(const FaultPlan& faults = {}) {
    return std::make_unique<RecordingFile>(plain(faults), record_);
  }

  TemporaryFile path_;
  SyncRecord record_;
  Door door_;
};

std::atomic<int> g_starts = 0;
Result<pthread_t> counted_start(void* (*body)(void*), void* argument) {
  ++g_starts;
  return start_io_thread(body, argument);
}

TEST_F(BackgroundSyncs, OneThreadStartsAtTheFirstWriteThatIsDue) {
  const auto file = open();
  g_starts = 0;
  BackgroundSync sync(*file, 4096, &counted_start);
  EXPECT_EQ(sync.wrote(kSomewhere, 4095).value(), false);
  EXPECT_EQ(g_starts, 0);
  for (int i = 1; i <= 5; ++i) {
    EXPECT_EQ(sync.wrote(kSomewhere, 4096).value(), false);
    EXPECT_TRUE(eventually([&] { return sync.notes().syncs_behind == i; })) << i;
  }
  EXPECT_EQ(g_starts, 1);
  EXPECT_EQ(record_.data, 5);
  EXPECT_EQ(record_.full, 0);
  EXPECT_TRUE(sync.at_close());
  EXPECT_EQ(record_.full, 1);
  EXPECT_EQ(sync.notes().degraded, "");
}

TEST_F(BackgroundSyncs, AFileThatIsHardlyWrittenNeedsNoThread) {
  const auto file = open();
  g_starts = 0;
  BackgroundSync sync(*file, 4096, &counted_start);
  EXPECT_TRUE(sync.wrote(kSomewhere, 100));
  EXPECT_TRUE(sync.sync(SyncKind::full));
  EXPECT_TRUE(sync.at_close());
  EXPECT_EQ(g_starts, 0);
  EXPECT_EQ(record_.full, 2);
}

TEST_F(BackgroundSyncs, WritersDoNotWaitAndOneSyncFollowsForAllThatBecameDueMeanwhile) {
  SlowFile file(plain(), record_, door_);
  BackgroundSync sync(file, 4096);
  EXPECT_EQ(sync.wrote(kSomewhere, 4096).value(), false);
  door_.await_somebody();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(sync.wrote(kSomewhere, 4096).value(), false);
  EXPECT_EQ(record_.data, 0) << "the first is still under way";
  door_.open();
  EXPECT_TRUE(eventually([&] { return sync.notes().syncs_behind == 2; }));
  EXPECT_TRUE(sync.at_close());
  EXPECT_EQ(record_.data, 2);
}

TEST_F(BackgroundSyncs, ASyncOfTheProgramWaitsForTheOneUnderWay) {
  SlowFile file(plain(), record_, door_);
  BackgroundSync sync(file, 4096);
  EXPECT_TRUE(sync.wrote(kSomewhere, 4096));
  door_.await_somebody();
  std::atomic<bool> done = false;
  std::jthread program([&] {
    EXPECT_TRUE(sync.sync(SyncKind::full));
    done = true;
  });
  for (int i = 0; i < 1000; ++i) ::sched_yield();
  EXPECT_FALSE(done);
  EXPECT_EQ(record_.full, 0);
  door_.open();
  program.join();
  EXPECT_EQ(record_.full, 1);
  EXPECT_TRUE(sync.at_close());
  EXPECT_FALSE(record_.crowded);
}

TEST_F(BackgroundSyncs, AFailureIsToldToTheNextWriteAndBySyncAndCloseForEver) {
  const auto file = open({.sync_errno = ENOSPC, .nth_sync = 1});
  BackgroundSync sync(*file, 4096);
  EXPECT_TRUE(sync.wrote(kSomewhere, 4096)) << "which cannot know yet";
  Result<bool> told = false;
  ASSERT_TRUE(eventually([&] { return !(told = sync.wrote(kSomewhere, 0)); }));
  EXPECT_EQ(told.error().error_class, ErrorClass::no_space);
  EXPECT_NE(told.error().message().find("in the background after every 4KiB"), std::string::npos);
  EXPECT_TRUE(sync.wrote(kSomewhere, 4096)) << "later writes are tried anew";
  EXPECT_TRUE(eventually([&] { return sync.notes().syncs_behind == 1; }));
  for (int again = 0; again < 2; ++again)
    EXPECT_EQ(sync.sync(SyncKind::full).error().error_class, ErrorClass::no_space);
  EXPECT_EQ(sync.at_close().error().error_class, ErrorClass::no_space);
  EXPECT_EQ(record_.full, 3) << "what is not lost is still pushed";
}

TEST_F(BackgroundSyncs, AFailureThatSyncHasToldIsNotToldToAWriteOfLater) {
  const auto file = open({.sync_errno = EIO, .nth_sync = 1});
  BackgroundSync sync(*file, 4096);
  EXPECT_TRUE(sync.wrote(kSomewhere, 4096));
  ASSERT_TRUE(eventually([&] { return record_.data == 1; }));
  EXPECT_FALSE(sync.sync(SyncKind::full)) << "it has waited for the sync that fails";
  EXPECT_TRUE(sync.wrote(kSomewhere, 0));
  EXPECT_FALSE(sync.at_close());
}

TEST_F(BackgroundSyncs, ASyncThatTheProgramAskedForIsToldByThoseBehindItToo) {
  const auto file = open({.sync_errno = EIO, .nth_sync = 1});
  BackgroundSync sync(*file, 4096);
  for (int again = 0; again < 2; ++again)
    EXPECT_EQ(sync.sync(SyncKind::full).error().error_class, ErrorClass::io);
  EXPECT_FALSE(sync.at_close());
}

Result<pthread_t> no_thread(void* (*)(void*), void*) {
  ++g_starts;
  return os_error("pthread_create", "an I/O thread", EAGAIN);
}

TEST_F(BackgroundSyncs, WithoutAThreadTheWritersSyncThemselvesAndTheLogSaysSo) {
  const auto file = open({.sync_errno = EIO, .nth_sync = 3});
  g_starts = 0;
  BackgroundSync sync(*file, 4096, &no_thread);
  EXPECT_EQ(sync.wrote(kSomewhere, 4096).value(), true);
  EXPECT_EQ(sync.wrote(kSomewhere, 4000).value(), false);
  EXPECT_EQ(sync.wrote(kSomewhere, 96).value(), true);
  EXPECT_EQ(record_.data, 2);
  EXPECT_FALSE(sync.wrote(kSomewhere, 4096)) << "a failure is told at once";
  EXPECT_TRUE(sync.wrote(kSomewhere, 1));
  EXPECT_EQ(g_starts, 1) << "it is not tried again";
  EXPECT_NE(sync.notes().degraded.find("could not be started"), std::string::npos);
  EXPECT_EQ(sync.notes().syncs_behind, 0) << "wrote() has told of them";
  EXPECT_FALSE(sync.at_close());
}

TEST_F(BackgroundSyncs, NoneIsUnderWayWhenTheFileIsClosed) {
  for (const bool in_order : {true, false})
    for (int i = 0; i < 50; ++i) {
      const auto file = open();
      {
        BackgroundSync sync(*file, 1);
        EXPECT_TRUE(sync.wrote(kSomewhere, 1));
        if (in_order) {
          EXPECT_TRUE(sync.at_close());
        }
      }
      EXPECT_TRUE(file->close());
    }
  EXPECT_FALSE(record_.late);
}

TEST_F(BackgroundSyncs, ThreadsMayWriteAndSyncAtTheSameTime) {
  const auto file = open();
  BackgroundSync sync(*file, 4096);
  {
    std::jthread program([&] {
      for (int i = 0; i < 20; ++i) EXPECT_TRUE(sync.sync(SyncKind::full));
    });
    std::jthread other([&] {
      for (int i = 0; i < 100; ++i) EXPECT_TRUE(sync.wrote(kSomewhere, 1024));
    });
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(sync.wrote(kSomewhere, 1024));
  }
  EXPECT_TRUE(sync.at_close());
  EXPECT_EQ(sync.notes().syncs_behind, record_.data);
  EXPECT_FALSE(record_.crowded);
}

}  // namespace
}  // namespace penstock::io::background_sync_test
