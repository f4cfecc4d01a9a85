// An open file whose method syncs between writes: who is told of a failure and how often, and who
// takes turns with whom.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "comm/borrow.hpp"
#include "comm/thread_comm.hpp"
#include "engine/file.hpp"
#include "engine/file_for_tests.hpp"
#include "io/eventually.hpp"
#include "io/faulty.hpp"
#include "io/recording_file.hpp"
#include "io/sync_habit.hpp"
#include "io/temporary_file.hpp"

namespace penstock::engine::file_sync_test {
namespace {

io::SyncRecord* g_record;  // of the running test's files
io::FaultPlan g_faults;    // of each of them

// Recorded and failing as the running test says.
OpenedFile recorded(OpenedFile inner) {
  return std::make_unique<io::RecordingFile>(
      std::make_unique<io::FaultyFile>(std::move(inner), g_faults), *g_record);
}

class FileSyncs : public ::testing::Test {
 protected:
  FileSyncs() {
    g_record = &record_;
    g_faults = {};
  }

  static OpenInfo info_for(const std::string& path, const std::string& method) {
    OpenInfo info = engine::info_for(path);
    info.config.method = parse_method(method).value();
    info.config.method.mechanism = &wrapped_pwrite<recorded>();
    return info;
  }

  static ErrorClass write_all(File& file, int rank, int64_t bytes) {
    const std::vector<char> data(size_t(bytes), char('a' + rank));
    return file.write_all(write_of(data, rank * bytes)).agreed;
  }

  io::TemporaryFile path_;
  io::SyncRecord record_;
};

TEST_F(FileSyncs, AreCountedInTheReport) {
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    auto f = File::open(comm::borrow(comm),
                        info_for(path_.path(), "individual + none + pwrite + every=4KiB"));
    ASSERT_TRUE(f->served()) << f->why_unserved();
    for (int i = 0; i < 10; ++i) EXPECT_EQ(write_all(*f, comm.rank(), 1024), ErrorClass::none);
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
    if (comm.rank() != 0) return;
    EXPECT_EQ(report.sum.policy_syncs, 2 * 2);
    EXPECT_GT(report.sum.policy_sync_ns, 0);
    EXPECT_EQ(report.actual_rate_source, "fsync") << "close has pushed the rest";
    EXPECT_NE(report.method.find("every=4KiB"), std::string::npos);
  });
  EXPECT_EQ(record_.data, 4);
  EXPECT_EQ(record_.full, 2);
}

TEST_F(FileSyncs, WhatHasNoSyncIsOnNoDevice) {
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    auto f =
        File::open(comm::borrow(comm), info_for("/dev/null", "individual + none + pwrite + end"));
    ASSERT_TRUE(f->served()) << f->why_unserved();
    EXPECT_EQ(write_all(*f, comm.rank(), 1024), ErrorClass::none);
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
    if (comm.rank() == 0) EXPECT_NE(report.actual_rate_source, "fsync");
  });
}

TEST_F(FileSyncs, AFailureIsToldByTheCallAndAgainBySyncAndCloseOnEveryRank) {
  g_faults = {.sync_errno = ENOSPC, .nth_sync = 1};
  comm::run_thread_team(3, [&](comm::Comm& comm) {
    auto f =
        File::open(comm::borrow(comm),
                   info_for(path_.path(), "two_phase(writers=1) + messages + pwrite + every=1"));
    EXPECT_EQ(write_all(*f, comm.rank(), 1024), ErrorClass::no_space);
    EXPECT_EQ(write_all(*f, comm.rank(), 1024), ErrorClass::none);
    EXPECT_EQ(f->sync(), ErrorClass::no_space);
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::no_space);
    if (comm.rank() != 0) return;
    EXPECT_NE(report.first_error.find("the sync after every 1"), std::string::npos);
    EXPECT_NE(report.actual_rate_source, "fsync");
  });
}

TEST_F(FileSyncs, PulsesAreCountedAndAreFsyncs) {
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    auto f = File::open(comm::borrow(comm),
                        info_for(path_.path(), "individual + none + pwrite + pulse=3KiB"));
    for (int i = 0; i < 9; ++i) EXPECT_EQ(write_all(*f, comm.rank(), 2048), ErrorClass::none);
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
    if (comm.rank() != 0) return;
    EXPECT_EQ(report.sum.policy_syncs, 2 * 6) << "18 KiB each";
    EXPECT_EQ(report.actual_rate_source, "fsync");
  });
  EXPECT_EQ(record_.data, 0);
  EXPECT_EQ(record_.full, 2 * (6 + 1));
}

TEST_F(FileSyncs, ThoseInTheBackgroundAreCountedInTheReportAndOverAtClose) {
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    auto f = File::open(comm::borrow(comm),
                        info_for(path_.path(), "individual + none + pwrite + background=1KiB"));
    for (int i = 0; i < 20; ++i) EXPECT_EQ(write_all(*f, comm.rank(), 1024), ErrorClass::none);
    EXPECT_TRUE(io::eventually([&] { return f->snapshot().sum.policy_syncs > 0; }));
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
    if (comm.rank() != 0) return;
    EXPECT_EQ(report.sum.policy_syncs, record_.data);
    EXPECT_EQ(report.actual_rate_source, "fsync");
    EXPECT_TRUE(report.degraded.empty());
  });
  EXPECT_GE(record_.data, 2);
  EXPECT_EQ(record_.full, 2);
  EXPECT_FALSE(record_.late);
}

TEST_F(FileSyncs, AFailureInTheBackgroundIsToldBySyncAndCloseOnEveryRank) {
  g_faults = {.sync_errno = ENOSPC, .nth_sync = 1};
  comm::run_thread_team(3, [&](comm::Comm& comm) {
    auto f = File::open(
        comm::borrow(comm),
        info_for(path_.path(), "two_phase(writers=1) + messages + pwrite + background=1"));
    EXPECT_EQ(write_all(*f, comm.rank(), 1024), ErrorClass::none) << "one page: too early to know";
    EXPECT_TRUE(io::eventually([&] { return record_.data > 0; }));
    EXPECT_EQ(f->sync(), ErrorClass::no_space);
    EXPECT_EQ(write_all(*f, comm.rank(), 1024), ErrorClass::none);
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::no_space);
    if (comm.rank() == 0) {
      EXPECT_NE(report.first_error.find("the sync in the background"), std::string::npos);
    }
  });
}

TEST_F(FileSyncs, AFileThatIsNeverClosedEndsItsBackgroundFirst) {
  for (int i = 0; i < 20; ++i)
    comm::run_thread_team(1, [&](comm::Comm& comm) {
      auto f = File::open(comm::borrow(comm),
                          info_for(path_.path(), "individual + none + pwrite + background=1"));
      EXPECT_EQ(write_all(*f, 0, 1024), ErrorClass::none);
    });
  EXPECT_FALSE(record_.late);
}

TEST_F(FileSyncs, AStreamLeavesThePushingToTheProgram) {
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    auto f = File::open(comm::borrow(comm),
                        info_for(path_.path(), "individual + none + pwrite + stream=1KiB"));
    for (int i = 0; i < 5; ++i) EXPECT_EQ(write_all(*f, comm.rank(), 1024), ErrorClass::none);
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
    if (comm.rank() != 0) return;
    EXPECT_EQ(report.sum.policy_syncs, 0);
    EXPECT_NE(report.actual_rate_source, "fsync") << "nothing is known to be on the device";
  });
  EXPECT_EQ(record_.data + record_.full, 0);
}

TEST_F(FileSyncs, AnIndependentWriteIsToldOfItsOwn) {
  g_faults = {.sync_errno = EIO, .nth_sync = 1};
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    auto f = File::open(comm::borrow(comm),
                        info_for(path_.path(), "individual + none + pwrite + every=100"));
    const std::vector<char> data(1000, 'x');
    Write w;
    w.kind = CallKind::write_at;
    w.memory = data.data();
    w.memory_type = layout::LoopTree::bytes(1);
    w.memory_count = 1000;
    const WriteResult r = f->write(w);
    EXPECT_EQ(r.agreed, ErrorClass::io);
    EXPECT_EQ(r.bytes, 0);
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::io);
    EXPECT_EQ(report.sum.engine_bytes, 0);
  });
}

TEST_F(FileSyncs, TheRanksOfOneFileTakeTurns) {
  comm::run_thread_team(4, [&](comm::Comm& comm) {
    auto f = File::open(comm::borrow(comm),
                        info_for(path_.path(), "individual + none + pwrite + coordinated=1KiB"));
    ASSERT_TRUE(f->served()) << f->why_unserved();
    for (int i = 0; i < 50; ++i) EXPECT_EQ(write_all(*f, comm.rank(), 1024), ErrorClass::none);
    EXPECT_EQ(f->sync(), ErrorClass::none);
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
    EXPECT_TRUE(report.degraded.empty());
  });
  EXPECT_EQ(record_.data, 200);
  EXPECT_EQ(record_.full, 8);
  EXPECT_FALSE(record_.crowded);
}

// A file per worker, each opened by a communicator of one.
void write_own_file(comm::Comm& comm, const OpenInfo& info, FileReport& report) {
  auto alone = comm::make_thread_team(1);
  auto f = File::open(std::move(alone[0]), info);
  ASSERT_TRUE(f->served()) << f->why_unserved();
  const std::vector<char> data(1024, 'x');
  Write w;
  w.memory = data.data();
  w.memory_type = layout::LoopTree::bytes(1);
  w.memory_count = 1024;
  for (int i = 0; i < 50; ++i, w.position_bytes += 1024)
    EXPECT_EQ(f->write_all(w).agreed, ErrorClass::none);
  EXPECT_EQ(f->close(report), ErrorClass::none);
  EXPECT_TRUE(comm.barrier());
}

TEST_F(FileSyncs, FilesThatShareALockTakeTurns) {
  const io::TemporaryFile other;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    OpenInfo info = info_for((comm.rank() == 0 ? path_ : other).path(),
                             "individual + none + pwrite + coordinated=1KiB");
    info.node_lock = comm.node_lock().value();
    FileReport report;
    write_own_file(comm, info, report);
    EXPECT_TRUE(report.degraded.empty());
  });
  EXPECT_EQ(record_.data, 100);
  EXPECT_FALSE(record_.crowded);
}

TEST_F(FileSyncs, AFileOfOneRankWithoutALockSaysThatItTakesTurnsWithNobody) {
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    FileReport report;
    write_own_file(comm, info_for(path_.path(), "individual + none + pwrite + coordinated=1KiB"),
                   report);
    ASSERT_EQ(report.degraded.size(), 1u);
    EXPECT_NE(report.degraded.begin()->first.find("takes turns with nobody"), std::string::npos);
  });
}

// A communicator whose node lock cannot be made, as on a node with a full /dev/shm.
class Lockless final : public comm::Borrowed {
 public:
  using Borrowed::Borrowed;
  Result<std::shared_ptr<comm::NodeLock>> node_lock() override {
    return os_error("posix_fallocate", "/dev/shm/x", ENOSPC);
  }
};

TEST_F(FileSyncs, WithoutALockTheFileIsPassedThroughAndSaysWhy) {
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    auto f = File::open(std::make_unique<Lockless>(comm),
                        info_for(path_.path(), "individual + none + pwrite + coordinated=1KiB"));
    EXPECT_FALSE(f->served());
    EXPECT_NE(f->why_unserved().find("needs a lock"), std::string::npos);
    EXPECT_NE(f->why_unserved().find("/dev/shm/x"), std::string::npos);
    EXPECT_EQ(f->sync(), ErrorClass::none);
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
  });
}

// What two ranks report of a file that is the library's, written by both, after a sync of both:
// rank 1's part of it in the library comes later, or fails.
FileReport passed_and_synced(OpenInfo info, const std::optional<Error>& failure) {
  FileReport report;
  info.config.mode = Mode::observe;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    auto f = File::open(comm::borrow(comm), info);
    f->passed_through(CallKind::write_at_all, 1000, 0.001, "write_at_all");
    EXPECT_EQ(f->sync(), ErrorClass::none);
    if (comm.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    f->passed_through(CallKind::sync, 0, 0.05, "sync", comm.rank() == 1 ? failure : std::nullopt);
    FileReport mine;
    EXPECT_EQ(f->close(mine), ErrorClass::none);
    if (comm.rank() == 0) report = mine;
  });
  return report;
}

TEST_F(FileSyncs, OfTheLibraryCountOnceAndTheActualRateIsUntilTheLastOfThem) {
  const FileReport report = passed_and_synced(info_for(path_.path(), "two_phase"), std::nullopt);
  EXPECT_EQ(report.sum.calls[size_t(CallKind::sync)], 2);
  EXPECT_EQ(report.actual_rate_source, "fsync");
  EXPECT_LE(report.actual_rate, 2000 / 0.05);
}

TEST_F(FileSyncs, ThatFailInTheLibraryLeaveTheActualRateUnknown) {
  const FileReport report = passed_and_synced(info_for(path_.path(), "two_phase"),
                                              Error{ErrorClass::io, EIO, "MPI_File_sync", ""});
  EXPECT_EQ(report.sum.calls[size_t(CallKind::sync)], 2);
  EXPECT_EQ(report.sum.errors, 1);
  EXPECT_EQ(report.actual_rate_source.rfind("not known", 0), 0u) << report.actual_rate_source;
}

TEST_F(FileSyncs, RanksOfDifferentNodesDoNotTakeTurns) {
  for (int tries = 0; tries < 50 && !record_.crowded; ++tries)
    comm::run_thread_team(
        2,
        [&](comm::Comm& comm) {
          auto f =
              File::open(comm::borrow(comm),
                         info_for(path_.path(), "two_phase + messages + pwrite + coordinated=1"));
          for (int i = 0; i < 50; ++i) (void)write_all(*f, comm.rank(), 4096);
          FileReport report;
          EXPECT_EQ(f->close(report), ErrorClass::none);
        },
        {.nodes = 2});
  EXPECT_TRUE(record_.crowded);
}

// `anticipate` starts the write-back of a program's next files by it.
TEST_F(FileSyncs, OfVerifyAcrossNodesAreNotTheProgramsHabit) {
  io::forget_sync_habit();
  comm::run_thread_team(2,
                        [&](comm::Comm& comm) {
                          OpenInfo info = info_for(path_.path(),
                                                   "individual + none + pwrite + anticipate=2MiB");
                          info.config.verify = true;
                          auto f = File::open(comm::borrow(comm), info);
                          EXPECT_EQ(write_all(*f, comm.rank(), 4096), ErrorClass::none);
                          FileReport report;
                          EXPECT_EQ(f->close(report), ErrorClass::none);
                          if (comm.rank() == 0) EXPECT_EQ(report.verified_bytes, 2 * 4096);
                        },
                        {.nodes = 2});
  EXPECT_EQ(record_.full, 2);
  EXPECT_EQ(io::sync_habit(), io::SyncHabit::does_not);
  io::forget_sync_habit();
}

}  // namespace
}  // namespace penstock::engine::file_sync_test
