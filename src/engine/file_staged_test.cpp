// Staged writes of an open file: who returns while the writes are held, who waits, and who is told
// of bytes that were accepted and could not be written.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "comm/thread_comm.hpp"
#include "engine/file.hpp"
#include "engine/file_for_tests.hpp"
#include "io/faulty.hpp"
#include "io/held_file.hpp"
#include "io/temporary_file.hpp"

namespace penstock::engine::file_staged_test {
namespace {

constexpr int64_t kBytes = 5000;

// Descriptors are functions, so what their files share is global; a test sets it before it opens.
io::Hold* hold = nullptr;
thread_local io::Hold* hold_of_rank = nullptr;
io::FaultPlan faults;

OpenedFile held_and_faulty(OpenedFile inner) {
  OpenedFile file = std::make_unique<io::FaultyFile>(std::move(inner), faults);
  io::Hold* const held = hold_of_rank != nullptr ? hold_of_rank : hold;
  if (held == nullptr) return file;
  return std::make_unique<io::HeldFile>(std::move(file), *held);
}

std::unique_ptr<File> open(comm::Comm& comm, const std::string& path,
                           const std::string& method = "two_phase(writers=1, cycle=4KiB)") {
  OpenInfo info = info_for(path);
  info.config.method = *parse_method(method);
  info.config.method.mechanism = &wrapped_pwrite<held_and_faulty>();
  return File::open(comm::borrow(comm), info);
}

class FileStages : public testing::Test {
 protected:
  void SetUp() override {
    hold = nullptr;
    faults = {};
  }
  void hold_writes() { hold = &hold_; }
  void fail_write(int nth, int error = ENOSPC) {
    faults.nth_write = nth;
    faults.write_errno = error;
  }

  io::Hold hold_;
  const io::TemporaryFile path_;
};

TEST_F(FileStages, NonBlockingWritesReturnWhileTheFileIsHeldAndTheNextBlockingOneWaits) {
  hold_writes();
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    auto f = open(comm, path_.path());
    const std::vector<char> a(kBytes, 'a'), b(kBytes, 'b');
    EXPECT_EQ(f->stage(write_of(a, 0, CallKind::write_at)).bytes, kBytes);
    EXPECT_EQ(f->stage(write_of(a, kBytes, CallKind::write_at_all)).bytes, kBytes);
    EXPECT_EQ(hold_.passed(), 0);
    EXPECT_EQ(f->snapshot().sum.engine_bytes, 0) << "accepted is not in the file";
    EXPECT_EQ(f->snapshot().sum.staged_bytes, 2 * kBytes);
    hold_.open();
    EXPECT_EQ(f->write(write_of(b, 0, CallKind::write_at)).bytes, kBytes);
    EXPECT_EQ(hold_.passed(), 3);
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
    EXPECT_EQ(report.sum.engine_bytes, 3 * kBytes);
    EXPECT_EQ(report.sum.staged_bytes, 2 * kBytes);
    EXPECT_EQ(report.sum.passthrough_bytes, 0);
  });
  const std::vector<std::byte> there = path_.contents();
  ASSERT_EQ(there.size(), size_t(2 * kBytes));
  EXPECT_EQ(there.front(), std::byte{'b'});
  EXPECT_EQ(there.back(), std::byte{'a'});
}

TEST_F(FileStages, NothingUnderALimitOfZero) {
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    auto f = open(comm, path_.path(), "two_phase+messages+pwrite+none+staged(limit=0)");
    const std::vector<char> data(kBytes, 'a');
    const Write by_all = write_of(data, comm.rank() * kBytes, CallKind::write_at_all);
    EXPECT_EQ(f->stage(by_all).bytes, kBytes);
    EXPECT_EQ(f->snapshot().sum.engine_bytes, kBytes);
    f->begin_write_all(write_of(data, comm.rank() * kBytes, CallKind::write_at_all));
    EXPECT_EQ(f->snapshot().sum.engine_bytes, 2 * kBytes);
    EXPECT_EQ(f->end_write_all().bytes, kBytes);
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
    if (comm.rank() != 0) return;
    EXPECT_EQ(report.sum.engine_bytes, 4 * kBytes);
    EXPECT_EQ(report.sum.staged_bytes, 0);
    EXPECT_TRUE(report.degraded.empty()) << report.degraded.begin()->first;
  });
}

TEST_F(FileStages, ASplitWriteReturnsFromBeginWhileTheFileIsHeldAndEndsWithAllBytes) {
  hold_writes();
  comm::run_thread_team(3, [&](comm::Comm& comm) {
    auto f = open(comm, path_.path());
    std::vector<char> data(kBytes, char('a' + comm.rank()));
    f->begin_write_all(write_of(data, comm.rank() * kBytes, CallKind::write_at_all));
    std::ranges::fill(data, '!');
    ASSERT_TRUE(comm.barrier());
    EXPECT_EQ(hold_.passed(), 0);
    EXPECT_EQ(f->snapshot().sum.engine_bytes, 0);
    ASSERT_TRUE(comm.barrier());
    hold_.open();
    const WriteResult result = f->end_write_all();
    EXPECT_EQ(result.agreed, ErrorClass::none);
    EXPECT_EQ(result.bytes, kBytes);
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
    if (comm.rank() != 0) return;
    EXPECT_EQ(report.sum.engine_bytes, 3 * kBytes);
    EXPECT_EQ(report.sum.staged_bytes, 3 * kBytes);
    EXPECT_EQ(report.algorithms, (std::map<std::string, int64_t>{{"two_phase", 3}}));
  });
  const std::vector<std::byte> there = path_.contents();
  ASSERT_EQ(there.size(), size_t(3 * kBytes));
  for (size_t i = 0; i < there.size(); ++i) ASSERT_EQ(int(there[i]), 'a' + int(i / kBytes));
}

// Rank 1's file is held for a while, so that what it staged is late; rank 0, which is not, writes
// what rank 1 brings to the split write.
TEST_F(FileStages, ASplitWriteComesBehindWhatItsRankStagedBefore) {
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    const bool late = comm.rank() == 1;
    hold_of_rank = late ? &hold_ : nullptr;
    auto f = open(comm, path_.path());
    const std::vector<char> before(kBytes, 'a'), after(kBytes, 'b');
    std::jthread opener;
    if (late) {
      EXPECT_EQ(f->stage(write_of(before, kBytes, CallKind::write_at)).bytes, kBytes);
      opener = std::jthread([this] {
        std::this_thread::sleep_for(std::chrono::milliseconds{50});
        hold_.open();
      });
    }
    f->begin_write_all(write_of(after, comm.rank() * kBytes, CallKind::write_at_all));
    EXPECT_EQ(f->end_write_all().bytes, kBytes);
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
  });
  for (const std::byte there : path_.contents()) ASSERT_EQ(there, std::byte{'b'});
}

TEST_F(FileStages, AFailedSplitWriteIsToldAtItsEndToAllRanksAndNotAgain) {
  fail_write(2);
  std::atomic<int> told = 0;
  comm::run_thread_team(3, [&](comm::Comm& comm) {
    auto f = open(comm, path_.path());
    const std::vector<char> data(kBytes, 'x');
    f->begin_write_all(write_of(data, comm.rank() * kBytes, CallKind::write_at_all));
    const WriteResult result = f->end_write_all();
    if (result.agreed == ErrorClass::no_space) ++told;
    // The second page of 4096 bytes is missing, and the third is there.
    const int64_t expected[] = {4096, 0, kBytes};
    EXPECT_EQ(result.bytes, expected[comm.rank()]);
    EXPECT_EQ(f->sync(), ErrorClass::none);
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
  });
  EXPECT_EQ(told, 3);
}

// Who goes on to read by the library finds what other ranks' threads had still to write.
TEST_F(FileStages, AFlushOfAllRanksThatTellsNobodyWaitsForAllOfThem) {
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    hold_of_rank = comm.rank() == 1 ? &hold_ : nullptr;
    auto f = open(comm, path_.path(), "individual");
    const std::vector<char> data(kBytes, 'x');
    f->stage(write_of(data, comm.rank() * kBytes, CallKind::write_at_all));
    std::jthread later([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(comm.rank() == 1 ? 30 : 0));
      if (comm.rank() == 1) hold_.open();
    });
    f->flush_untold(Drain::joint);
    EXPECT_EQ(hold_.passed(), 1);
    hold_of_rank = nullptr;
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
  });
}

TEST_F(FileStages, AnAcceptedByteThatIsLostIsToldOnceByTheNextCallAndByEachSyncAndTheClose) {
  fail_write(1);
  std::atomic<int> next = 0, synced = 0, closed = 0;
  comm::run_thread_team(3, [&](comm::Comm& comm) {
    auto f = open(comm, path_.path());
    const std::vector<char> data(kBytes, 'x');
    if (comm.rank() == 1) {
      EXPECT_EQ(f->stage(write_of(data, 4096, CallKind::write_at)).agreed, ErrorClass::none);
      f->flush_untold(Drain::lane);  // lost now, and nobody is told
      if (f->flush(Drain::mine) == ErrorClass::no_space) ++next;
      EXPECT_EQ(f->flush(Drain::mine), ErrorClass::none) << "told";
    }
    for (int again = 0; again < 2; ++again) {
      std::optional<Error> own;
      if (f->sync(&own) == ErrorClass::no_space) ++synced;
      EXPECT_EQ(own.has_value(), comm.rank() == 1);
      if (!own) continue;
      EXPECT_NE(own->message().find("5000 bytes"), std::string::npos) << own->message();
      EXPECT_NE(own->message().find("[4096, 9096)"), std::string::npos) << own->message();
    }
    FileReport report;
    if (f->close(report) == ErrorClass::no_space) ++closed;
    if (comm.rank() != 0) return;
    EXPECT_EQ(report.sum.engine_bytes, 0);
    EXPECT_NE(report.first_error.find("[4096, 9096)"), std::string::npos) << report.first_error;
    EXPECT_EQ(report.degraded.size(), 1u);
  });
  EXPECT_EQ(next, 1);
  EXPECT_EQ(synced, 6);
  EXPECT_EQ(closed, 3);
}

TEST_F(FileStages, ACollectiveWriteTellsAllRanksOfWhatOneLost) {
  fail_write(1);
  std::atomic<int> told = 0;
  comm::run_thread_team(3, [&](comm::Comm& comm) {
    auto f = open(comm, path_.path());
    const std::vector<char> data(kBytes, 'x');
    if (comm.rank() == 2) f->stage(write_of(data, 100'000, CallKind::write_at));
    const WriteResult result =
        f->write_all(write_of(data, comm.rank() * kBytes, CallKind::write_at_all));
    if (comm.rank() != 0) {  // rank 0's first write fails too
      EXPECT_LE(result.bytes, kBytes);
    }
    if (result.agreed == ErrorClass::no_space) ++told;
    EXPECT_EQ(f->sync(), ErrorClass::no_space);
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::no_space);
  });
  EXPECT_EQ(told, 3);
}

TEST_F(FileStages, ACollectiveDrainTellsAllRanksAfterACollectiveNonBlockingWrite) {
  fail_write(1, EIO);
  std::atomic<int> told = 0;
  comm::run_thread_team(3, [&](comm::Comm& comm) {
    auto f = open(comm, path_.path());
    const std::vector<char> data(kBytes, 'x'), none;
    const bool fails = comm.rank() == 1;  // the others bring nothing, and nothing fails there
    f->stage(write_of(fails ? data : none, 0, CallKind::write_at_all));
    if (f->flush(Drain::joint) == ErrorClass::io) ++told;
    EXPECT_EQ(f->flush(Drain::joint), ErrorClass::none);
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::io);
  });
  EXPECT_EQ(told, 3);
}

constexpr int kNobody = -1;

class FileStagesSplitUnended : public FileStages {
 protected:
  // Of two ranks, how many close tells of a split write that failed and that this one alone ends.
  int told_by_close(int ends) {
    fail_write(1);
    std::atomic<int> closed = 0;
    comm::run_thread_team(2, [&](comm::Comm& comm) {
      auto f = open(comm, path_.path());
      const std::vector<char> data(kBytes, 'x');
      f->begin_write_all(write_of(data, comm.rank() * kBytes, CallKind::write_at_all));
      if (comm.rank() == ends) EXPECT_EQ(f->end_write_all().agreed, ErrorClass::no_space);
      FileReport report;
      if (f->close(report) == ErrorClass::no_space) ++closed;
    });
    return closed;
  }
};

TEST_F(FileStagesSplitUnended, IsFinishedAndToldByCloseWhereNobodyEndsIt) {
  EXPECT_EQ(told_by_close(kNobody), 2);
}

TEST_F(FileStagesSplitUnended, IsToldByCloseToAllWhereOneRankEndsIt) {
  EXPECT_EQ(told_by_close(0), 2) << "the library's close follows on all or on none";
}

// A file that is left open, as at MPI_Finalize.
// Staged, scattered and so done where it began, and without room to stage anything.
constexpr const char* kStaged = "two_phase(writers=1, cycle=4KiB)";
constexpr const char* kScattered = "dynamic_segmentation(writers=1)";
constexpr const char* kUnstaged = "two_phase+messages+pwrite+none+staged(limit=0)";

TEST_F(FileStagesSplitUnended, IsInTheReportOfALeftFileWhereItFailed) {
  for (const char* const method : {kStaged, kScattered}) {
    fail_write(1);
    comm::run_thread_team(2, [&](comm::Comm& comm) {
      auto f = open(comm, path_.path(), method);
      const std::vector<char> data(kBytes, 'x');
      f->begin_write_all(write_of(data, comm.rank() * kBytes, CallKind::write_at_all));
      f->flush(Drain::last);
      const FileReport report = f->snapshot();
      FileReport closed;
      f->close(closed);
      int64_t errors[] = {report.sum.errors};
      ASSERT_TRUE(comm.all_sum(errors).has_value());
      EXPECT_EQ(errors[0], 1) << method << ": of the rank whose write failed";
      EXPECT_EQ(report.first_error.empty(), report.sum.errors == 0) << method;
    });
  }
}

TEST_F(FileStagesSplitUnended, IsSaidAtAnExitWhereItFailed) {
  for (const char* const method : {kStaged, kScattered, kUnstaged}) {
    fail_write(1);
    comm::run_thread_team(1, [&](comm::Comm& comm) {
      auto f = open(comm, path_.path(), method);
      const std::vector<char> data(kBytes, 'x');
      f->begin_write_all(write_of(data, 0, CallKind::write_at_all));
      const auto failed = f->flush_at_exit();
      ASSERT_TRUE(failed.has_value()) << method;
      EXPECT_EQ(failed->error_class, ErrorClass::no_space) << method;
      FileReport report;
      f->close(report);
    });
  }
}

TEST_F(FileStages, WrongArgumentsOfOneRankAreToldAtTheEndToAll) {
  comm::run_thread_team(3, [&](comm::Comm& comm) {
    auto f = open(comm, path_.path());
    const std::vector<char> data(kBytes, 'x');
    Write w = write_of(data, comm.rank() * kBytes, CallKind::write_at_all);
    if (comm.rank() == 1) w.argument_error = ErrorClass::argument;
    f->begin_write_all(w);
    const WriteResult result = f->end_write_all();
    EXPECT_EQ(result.agreed, ErrorClass::argument);
    EXPECT_EQ(result.bytes, comm.rank() == 1 ? 0 : kBytes);
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
  });
}

TEST_F(FileStages, VerifiesWhatWasStaged) {
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    OpenInfo info;
    info.path = path_.path();
    info.writable = true;
    info.config.verify = true;
    auto f = File::open(comm::borrow(comm), info);
    const std::vector<char> data(kBytes, 'x');
    f->stage(write_of(data, comm.rank() * kBytes, CallKind::write_at));
    f->begin_write_all(write_of(data, (2 + comm.rank()) * kBytes, CallKind::write_at_all));
    EXPECT_EQ(f->end_write_all().bytes, kBytes);
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
    if (comm.rank() == 0) {
      EXPECT_EQ(report.verified_bytes, 4 * kBytes);
    }
  });
}

}  // namespace
}  // namespace penstock::engine::file_staged_test
