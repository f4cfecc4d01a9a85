// What pages of independent writes take where memory is limited, and where there is none.
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "comm/borrow.hpp"
#include "comm/thread_comm.hpp"
#include "exec/behind_for_tests.hpp"
#include "exec/blocks.hpp"
#include "exec/write_behind.hpp"
#include "io/forwarding_file.hpp"
#include "io/sync_policy.hpp"
#include "io/temporary_file.hpp"

namespace penstock::exec::write_behind_memory_test {
namespace {

constexpr int64_t kSmallPage = 4096;

std::unique_ptr<io::MechanismFile> open(const std::string& path) {
  return io::find_mechanism("pwrite")->open({.path = path}).value();
}

// Other files may have taken it since this one was opened. With 13 pages the quarter is used up.
TEST(WriteBehind, PagesTakeAQuarterOfWhatALimitLeavesByNow) {
  const io::TemporaryFile path;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    BehindRank rank(
        comm, open(path.path()),
        {.page_bytes = kSmallPage,
         .limit_bytes_per_rank = 64 * kSmallPage,
         .memory_left = [](int64_t) { return std::optional<int64_t>(40 * kSmallPage); }},
        Thread::none);
    for (int64_t page = 0; page < 60; ++page) rank.write_at(page * kSmallPage, kSmallPage / 2);
    EXPECT_EQ(rank.pages_in_memory(), 13);
    rank.flush();
  });
  for (int64_t page = 0; page < 60; ++page)
    ASSERT_EQ(path.contents()[size_t(page * kSmallPage)], value_at(page * kSmallPage));
}

// Once it is spent there is no memory for a page.
class SpentSegment final : public comm::SharedSegment {
 public:
  SpentSegment(std::shared_ptr<comm::SharedSegment> real, const bool& spent)
      : SharedSegment(real->memory()), real_(std::move(real)), spent_(spent) {}
  Result<void> populate(size_t at, size_t bytes) override {
    if (spent_) return os_error("posix_fallocate", "the test", ENOSPC);
    return real_->populate(at, bytes);
  }

 private:
  std::shared_ptr<comm::SharedSegment> real_;
  const bool& spent_;
};

class SpentMachine final : public comm::Borrowed {
 public:
  using Borrowed::Borrowed;
  Result<std::shared_ptr<comm::SharedSegment>> shared_segment(
      const comm::SegmentShape& shape) override {
    auto real = Borrowed::shared_segment(shape);
    if (!real) return real;
    return std::shared_ptr<comm::SharedSegment>(std::make_shared<SpentSegment>(*real, spent));
  }
  bool spent = false;
};

TEST(WriteBehindMemory, WhereALimitLeavesNoneAndThereIsNoneToShareNothingIsAccepted) {
  const io::TemporaryFile path;
  comm::run_thread_team(1, [&](comm::Comm& owner) {
    SpentMachine comm(owner);
    BehindRank rank(comm, open(path.path()),
                    {.page_bytes = kSmallPage,
                     .limit_bytes_per_rank = 64 * kSmallPage,
                     .memory_left = [](int64_t) { return std::optional<int64_t>(0); }},
                    Thread::none);
    comm.spent = true;
    EXPECT_EQ(rank.write(bytes_at(0, 100), 0).prefix_bytes, 0) << "the caller writes";
    EXPECT_EQ(rank.notes().without_memory, 1);
  });
}

TEST(WriteBehindMemory, WhatIsShortForAMomentIsAskedForAgain) {
  const io::TemporaryFile path;
  comm::run_thread_team(1, [&](comm::Comm& owner) {
    SpentMachine comm(owner);
    BehindRank rank(comm, open(path.path()),
                    {.page_bytes = kSmallPage, .limit_bytes_per_rank = 64 * kSmallPage},
                    Thread::none);
    rank.write_at(0, kSmallPage / 2);
    rank.write_at(kSmallPage, kSmallPage / 2);
    comm.spent = true;
    rank.write_at(2 * kSmallPage, kSmallPage / 2);
    EXPECT_EQ(rank.pages_in_memory(), 2) << "the oldest has made room";
    rank.flush();
    comm.spent = false;
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    for (int64_t page = 3; page < 20; ++page) rank.write_at(page * kSmallPage, kSmallPage / 2);
    EXPECT_EQ(rank.pages_in_memory(), 17);
    EXPECT_EQ(rank.notes().without_memory, 0);
    rank.flush();
  });
  for (int64_t page = 0; page < 20; ++page)
    ASSERT_EQ(path.contents()[size_t(page * kSmallPage)], value_at(page * kSmallPage));
}

// There is no memory for what the first write takes besides its bytes.
class WithoutMemory final : public io::ForwardingFile {
 public:
  using ForwardingFile::ForwardingFile;
  std::optional<io::Fault> write(std::span<const std::byte> bytes, Off offset) override {
    if (!std::exchange(failed_, true)) throw std::bad_alloc();
    return ForwardingFile::write(bytes, offset);
  }

 private:
  bool failed_ = false;
};

TEST(WriteBehindMemory, APageThatThereIsNoMemoryToWriteIsLostAndNobodyWaitsForIt) {
  const io::TemporaryFile path;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    BehindRank rank(comm, std::make_unique<WithoutMemory>(open(path.path())),
                    {.page_bytes = kSmallPage, .limit_bytes_per_rank = 64 * kSmallPage},
                    Thread::none);
    rank.write_at(0, 100);
    rank.flush();
    EXPECT_EQ(rank.notes().lost_bytes, 100);
    EXPECT_EQ(rank.notes().failure->error_class, ErrorClass::no_memory);
    rank.write_at(50, 100);
    rank.flush();
  });
  EXPECT_EQ(path.contents().size(), 150u);
}

// After the nth write.
class SyncFails final : public io::FileSync {
 public:
  SyncFails(io::MechanismFile& file, int nth) : FileSync(file), left_(nth) {}
  Result<bool> wrote(Extent, int64_t) override {
    if (--left_ == 0) return os_error("fdatasync", "the test", EIO);
    return false;
  }
  void fail() { note_failure(os_error("fdatasync", "the test", EIO).value()); }

 private:
  int left_;
};

// What the caller writes then is behind the same syncs as pages that have left.
TEST(WriteBehindMemory, ASyncThatFailsWhereThereIsNoneLosesWhatHasLeftBefore) {
  const io::TemporaryFile path;
  comm::run_thread_team(1, [&](comm::Comm& owner) {
    SpentMachine comm(owner);
    const auto file = open(path.path());
    SyncFails sync(*file, 2);
    const WriteBehind::Target target{*file, &sync};
    const auto behind = WriteBehind::make(comm, {kSmallPage, 0}, {}, std::nullopt).value();
    const Blocks some(0, 100, 100, 1);
    EXPECT_EQ(behind->write(target, some.request()).prefix_bytes, 100);
    behind->flush(target);
    WriteOutcome alone;  // of 50 bytes that the caller wrote
    alone.sync_failed = true;
    alone.mine = sync.wrote({}, 0).error();
    sync.fail();  // as a policy notes it
    behind->note_written(target, alone, {4096, 4146}, behind->writes());
    EXPECT_EQ(behind->notes().written_bytes, 0);
    EXPECT_EQ(behind->notes().lost_bytes, 100);
    // Where one had succeeded before another failed, what was before is certain.
    WriteOutcome both = alone;
    both.written_bytes = both.synced_bytes = 50;
    behind->note_written(target, WriteOutcome{.written_bytes = 30}, {5000, 5030}, 0);
    sync.fail();
    behind->note_written(target, both, {8192, 8292}, behind->writes());
    EXPECT_EQ(behind->notes().lost_bytes, 100);
  });
}

// As the caller does around a write of its own.
TEST(WriteBehindMemory, WhatTheCallerWritesIsBehindTheSyncsOfAll) {
  const io::TemporaryFile path;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    const auto file = open(path.path());
    SyncFails sync(*file, 100);
    const WriteBehind::Target target{*file, &sync};
    const auto behind = WriteBehind::make(comm, {kSmallPage, 0}, {}, std::nullopt).value();
    const auto write = [&](const WriteOutcome& outcome) {
      behind->settle(target);
      behind->note_written(target, outcome, {0, 100}, behind->writes());
    };
    const Error why = os_error("fdatasync", "the test", EIO).value();
    write({.written_bytes = 30});
    EXPECT_TRUE(sync.sync(io::SyncKind::full));
    write({.mine = why, .sync_failed = true});
    EXPECT_EQ(behind->notes().lost_bytes, 0) << "the program has synced it";
    write({.written_bytes = 30});
    sync.fail();
    write({.written_bytes = 50, .synced_bytes = 50});
    EXPECT_EQ(behind->notes().lost_bytes, 30) << "a later success makes nothing certain";
  });
}

}  // namespace
}  // namespace penstock::exec::write_behind_memory_test
