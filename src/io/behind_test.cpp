// A thread that writes behind its caller: the caller goes on, and learns of every page how it went.
#include "io/behind.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <cerrno>
#include <cstring>

#include "io/eventually.hpp"
#include "io/faulty.hpp"
#include "io/recording_file.hpp"
#include "io/temporary_file.hpp"

namespace penstock::io::behind_test {
namespace {

// Holds every submission back until its door opens, and remembers who submits.
class SlowFile final : public RecordingFile {
 public:
  using RecordingFile::RecordingFile;
  void submit(Lease lease, std::span<const Extent> dirty) override {
    if (!dirty.empty()) {
      writer = ::pthread_self();
      const int number = ++arrived;
      EXPECT_TRUE(eventually([&] { return open.load() && number < hold_from; }));
    }
    RecordingFile::submit(lease, dirty);
  }

  std::atomic<bool> open = false;
  std::atomic<int> arrived = 0, hold_from = 1000;
  pthread_t writer{};
};

std::unique_ptr<MechanismFile> plain(const std::string& path, const FaultPlan& faults = {}) {
  return std::make_unique<FaultyFile>(find_mechanism("pwrite")->open({.path = path}).value(),
                                      faults);
}

void submit(MechanismFile& file, Extent where, char value) {
  const auto lease = file.lease(where);
  ASSERT_TRUE(lease) << lease.error().message();
  std::memset(lease->memory.data(), value, lease->memory.size());
  const Extent dirty[] = {where};
  file.submit(*lease, dirty);
}

// What a policy is told, and by whom.
class Told final : public FileSync {
 public:
  explicit Told(MechanismFile& file, int fails = 0) : FileSync(file), fails_(fails) {}
  Result<bool> wrote(Extent, int64_t bytes) override {
    all += bytes;
    teller = ::pthread_self();
    if (++calls == fails_) return fail(ErrorClass::no_space, "sync", "made to fail");
    return calls % 2 == 0;
  }

  int64_t all = 0;
  int calls = 0;
  pthread_t teller{};

 private:
  int fails_;
};

TEST(Behind, TheCallerFillsTheNextPageWhileOneIsBeingWritten) {
  const TemporaryFile path;
  SyncRecord record;
  SlowFile slow(plain(path.path()), record);
  BehindFile file(slow);
  ASSERT_TRUE(file.start());
  submit(file, {0, 4096}, 'a');
  EXPECT_TRUE(eventually([&] { return slow.arrived == 1; }));
  const auto next = file.lease({4096, 8192});
  ASSERT_TRUE(next) << "while the thread is inside the first write";
  std::memset(next->memory.data(), 'b', 4096);
  slow.open = true;
  EXPECT_FALSE(file.reap());
  EXPECT_EQ(::pthread_equal(slow.writer, ::pthread_self()), 0) << "the rank itself wrote";
  const Extent dirty[] = {{4096, 8192}};
  file.submit(*next, dirty);
  EXPECT_FALSE(file.reap());
  EXPECT_TRUE(file.close());
  const auto contents = path.contents();
  ASSERT_EQ(contents.size(), 8192u);
  EXPECT_EQ(contents[4095], std::byte('a'));
  EXPECT_EQ(contents[4096], std::byte('b'));
}

// Else the caller would wait for a slot as long as the thread writes the page behind it.
TEST(Behind, TheCallerHearsOfAPageBeforeTheNextIsWritten) {
  const TemporaryFile path;
  SyncRecord record;
  SlowFile slow(plain(path.path()), record);
  slow.open = true;
  BehindFile file(slow);
  ASSERT_TRUE(file.start());
  submit(file, {0, 4096}, 'a');
  EXPECT_TRUE(eventually([&] { return slow.arrived == 1; }));
  slow.hold_from = 2;
  submit(file, {4096, 8192}, 'b');
  EXPECT_FALSE(file.reap()) << "the first; the second is held back";
  EXPECT_TRUE(file.lease({8192, 12288})) << "its slot is free";
  slow.hold_from = 1000;
  EXPECT_FALSE(file.reap());
  EXPECT_TRUE(file.close());
}

TEST(Behind, AFaultIsOfThePageThatHadItAndLaterPagesAreTriedAnew) {
  const TemporaryFile path;
  const auto inner =
      plain(path.path(), {.nth_write = 2, .bytes_before_fault = 100, .write_errno = ENOSPC});
  BehindFile file(*inner);
  ASSERT_TRUE(file.start());
  for (Off page = 0; page < 4; ++page) {
    submit(file, {page * 4096, page * 4096 + 4096}, 'x');
    const auto fault = file.reap();
    EXPECT_EQ(fault.has_value(), page == 1) << page;
    if (!fault) continue;
    EXPECT_EQ(fault->error.error_class, ErrorClass::no_space);
    EXPECT_EQ(fault->first_missing, 4096 + 100);
  }
  EXPECT_TRUE(file.close());
}

TEST(Behind, ThePolicyIsToldByTheThreadOfWhatIsInTheFile) {
  const TemporaryFile path;
  const auto inner =
      plain(path.path(), {.nth_write = 2, .bytes_before_fault = 100, .write_errno = EIO});
  Told told(*inner, 3);
  BehindFile file(*inner);
  ASSERT_TRUE(file.start());
  file.set_sync(&told);
  submit(file, {0, 4096}, 'x');
  submit(file, {4096, 8192}, 'x');
  EXPECT_FALSE(file.reap());
  ASSERT_TRUE(file.synced().has_value());
  EXPECT_EQ(**file.synced(), false);
  EXPECT_TRUE(file.reap());
  EXPECT_EQ(**file.synced(), true);
  submit(file, {8192, 12288}, 'x');
  EXPECT_FALSE(file.reap()) << "the bytes are in the file: only their sync failed";
  ASSERT_TRUE(file.synced().has_value());
  EXPECT_EQ(file.synced()->error().error_class, ErrorClass::no_space);
  EXPECT_TRUE(file.close());
  EXPECT_EQ(told.all, 4096 + 100 + 4096);
  EXPECT_EQ(::pthread_equal(told.teller, ::pthread_self()), 0);
}

TEST(Behind, AThreadThatCannotStartIsSaidAndNothingIsLost) {
  const TemporaryFile path;
  const auto inner = plain(path.path());
  BehindFile file(*inner, [](void* (*)(void*), void*) -> Result<pthread_t> {
    return os_error("pthread_create", "an I/O thread", EAGAIN);
  });
  const auto started = file.start();
  ASSERT_FALSE(started);
  EXPECT_NE(started.error().message().find("pthread_create"), std::string::npos);
  EXPECT_FALSE(file.reap());
  EXPECT_TRUE(file.close());
}

TEST(Behind, WhatIsSubmittedIsWrittenBeforeItEnds) {
  const TemporaryFile path;
  const auto inner = plain(path.path());
  {
    BehindFile file(*inner);
    ASSERT_TRUE(file.start());
    ASSERT_TRUE(file.start()) << "it runs already";
    submit(file, {0, 4096}, 'x');
    submit(file, {4096, 8192}, 'x');
  }
  EXPECT_TRUE(inner->close());
  EXPECT_EQ(path.contents().size(), 8192u);
}

}  // namespace
}  // namespace penstock::io::behind_test
