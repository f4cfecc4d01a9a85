// Collective reads of an open file, on threads: who serves them, and what the report says.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <vector>

#include "comm/thread_comm.hpp"
#include "engine/file.hpp"
#include "engine/file_for_tests.hpp"
#include "io/temporary_file.hpp"

namespace penstock::engine::file_read_test {
namespace {

constexpr int kRanks = 3;
constexpr int64_t kBytes = 5000;

OpenInfo readable(const std::string& path) {
  OpenInfo info = info_for(path);
  info.readable = true;
  return info;
}

Read read_into(std::vector<char>& memory, int64_t position) {
  Read r;
  r.position_bytes = position;
  r.memory = memory.data();
  r.memory_type = layout::LoopTree::bytes(1);
  r.memory_count = int64_t(memory.size());
  return r;
}

// Each rank writes its part, and reads the next one's, and beyond the last.
void write_and_read(File& file, int rank) {
  const std::vector<char> mine(kBytes, char('a' + rank));
  EXPECT_EQ(file.write_all(write_of(mine, rank * kBytes)).agreed, ErrorClass::none);
  std::vector<char> theirs(kBytes + 10, '-');
  ASSERT_TRUE(file.serves_reads());
  const ReadResult r = file.read_all(read_into(theirs, (rank + 1) * kBytes));
  EXPECT_EQ(r.agreed, ErrorClass::none);
  const int64_t there = rank == kRanks - 1 ? 0 : rank == kRanks - 2 ? kBytes : kBytes + 10;
  EXPECT_EQ(r.bytes, there);
  EXPECT_EQ(theirs.front(), there > 0 ? char('b' + rank) : '-');
  EXPECT_EQ(theirs.back(), there > kBytes ? char('c' + rank) : '-');
}

TEST(FileReads, FindWhatAllRanksHaveJustWrittenAndAreInTheReport) {
  for (const char* method : {"auto", "two_phase(writers=2, cycle=4KiB)", "individual"}) {
    const io::TemporaryFile file;
    comm::run_thread_team(kRanks, [&](comm::Comm& comm) {
      OpenInfo info = readable(file.path());
      info.config.method = *parse_method(method);
      auto f = File::open(comm::borrow(comm), info);
      write_and_read(*f, comm.rank());
      FileReport report;
      EXPECT_EQ(f->close(report), ErrorClass::none);
      if (comm.rank() != 0) return;
      EXPECT_EQ(report.sum.engine_bytes, kRanks * kBytes);
      EXPECT_EQ(report.sum.engine_read_bytes, kBytes + 10 + kBytes);
      EXPECT_EQ(report.sum.read_calls, kRanks);
      EXPECT_EQ(report.sum.read_bytes, 0);
      EXPECT_GE(report.sum.file_reads, 1);
      EXPECT_GE(report.sum.file_read_bytes, 2 * kBytes);
      EXPECT_TRUE(report.degraded.empty());
    });
  }
}

// Rank r as many times as its number is: nobody may wait for another.
TEST(FileReads, OfARankAloneFindWhatItHasJustWritten) {
  const io::TemporaryFile file;
  comm::run_thread_team(kRanks, [&](comm::Comm& comm) {
    auto f = File::open(comm::borrow(comm), readable(file.path()));
    const auto tile = *layout::LoopTree::resized(layout::LoopTree::bytes(10), 0, 10 * kRanks);
    f->set_view(*layout::FileView::make(10 * comm.rank(), 1, tile), "");
    ASSERT_TRUE(f->serves_reads());
    const std::vector<char> mine(kBytes, char('a' + comm.rank()));
    EXPECT_EQ(f->write(write_of(mine, 0)).agreed, ErrorClass::none);
    for (int i = 0; i < comm.rank(); ++i) {
      std::vector<char> back(100, '-');
      const ReadResult r = f->read(read_into(back, kBytes - 60));
      EXPECT_EQ(r.agreed, ErrorClass::none);
      EXPECT_EQ(r.bytes, 60);
      EXPECT_EQ(std::count(back.begin(), back.end(), mine[0]), 60);
      EXPECT_EQ(std::count(back.begin(), back.end(), '-'), 40);
    }
    Read wrong;
    wrong.argument_error = ErrorClass::argument;
    EXPECT_EQ(f->read(wrong).agreed, ErrorClass::argument);
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
    if (comm.rank() != 0) return;
    EXPECT_EQ(report.sum.engine_read_bytes, (1 + 2) * 60);
    EXPECT_GE(report.sum.file_reads, 1 + 2);
    EXPECT_EQ(report.sum.errors, kRanks);
  });
}

TEST(FileReads, AreServedOfAFileThatIsOpenedForReadingAlone) {
  const io::TemporaryFile file;
  std::ofstream(file.path()) << std::string(100, 'x');
  comm::run_thread_team(kRanks, [&](comm::Comm& comm) {
    OpenInfo info = readable(file.path());
    info.writable = false;
    auto f = File::open(comm::borrow(comm), info);
    EXPECT_FALSE(f->served());
    f->set_view(*layout::FileView::make(10, 1, layout::LoopTree::bytes(1)), "");
    ASSERT_TRUE(f->serves_reads());
    std::vector<char> memory(200, '-');
    EXPECT_EQ(f->read_all(read_into(memory, 20)).bytes, 70);
    EXPECT_EQ(memory[69], 'x');
    EXPECT_EQ(memory[70], '-');
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
  });
}

TEST(FileReads, AreNotServedWhereRanksWouldReadInSeveralWays) {
  const io::TemporaryFile file;
  comm::run_thread_team(kRanks, [&](comm::Comm& comm) {
    OpenInfo info = readable(file.path());
    info.writable = false;
    info.config.method = *parse_method(comm.rank() == 1 ? "two_phase(writers=1)" : "individual");
    auto f = File::open(comm::borrow(comm), info);
    EXPECT_FALSE(f->serves_reads());
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
  });
}

// Not served; the same on every rank, though only rank 1 has a reason.
void expect_unserved(const std::string& path, void (*spoil)(OpenInfo&)) {
  comm::run_thread_team(kRanks, [&](comm::Comm& comm) {
    OpenInfo info = readable(path);
    if (comm.rank() == 1) spoil(info);
    auto f = File::open(comm::borrow(comm), info);
    EXPECT_FALSE(f->serves_reads());
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
  });
}

TEST(FileReads, AreTheLibrarysWhereSomeRankHasAReason) {
  const io::TemporaryFile file;
  expect_unserved(file.path(), [](OpenInfo& i) { i.config.reads = Reads::pass; });
  expect_unserved(file.path(), [](OpenInfo& i) { i.readable = false; });
  expect_unserved(file.path(), [](OpenInfo& i) { i.unserved_why = "for a test"; });
  expect_unserved(file.path(), [](OpenInfo& i) { i.config.mode = Mode::observe; });
}

TEST(FileReads, AreTheLibrarysInAtomicModeAndThroughViewsThatAreNotServed) {
  const io::TemporaryFile file;
  comm::run_thread_team(kRanks, [&](comm::Comm& comm) {
    auto f = File::open(comm::borrow(comm), readable(file.path()));
    EXPECT_TRUE(f->serves_reads());
    f->set_atomic(true);
    EXPECT_FALSE(f->serves_reads());
    f->passed_through(CallKind::read, 7, 0, "read_all");
    f->set_atomic(false);
    f->set_view({}, comm.rank() == 1 ? "for a test" : "");
    EXPECT_FALSE(f->serves_reads());
    f->set_view({}, "");
    EXPECT_TRUE(f->serves_reads());
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
    if (comm.rank() != 0) return;
    EXPECT_EQ(report.degraded, (std::map<std::string, int64_t>{{"read_all: atomic mode", kRanks}}));
    EXPECT_EQ(report.sum.read_bytes, 7 * kRanks);
  });
}

TEST(FileReads, AreOfTheSameFileWhateverHasItsNameByNow) {
  const io::TemporaryFile file;
  const std::string moved = file.path() + ".moved";
  comm::run_thread_team(kRanks, [&](comm::Comm& comm) {
    auto f = File::open(comm::borrow(comm), readable(file.path()));
    EXPECT_TRUE(comm.barrier());
    if (comm.rank() == 0) {
      std::rename(file.path().c_str(), moved.c_str());
      std::ofstream(file.path()) << "another";
    }
    EXPECT_TRUE(comm.barrier());
    write_and_read(*f, comm.rank());
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
  });
  std::remove(moved.c_str());
}

// What a device or a file of /proc holds, only who reads it knows.
TEST(FileReads, AreTheLibrarysWhereAFileDoesNotTellItsEnd) {
  expect_unserved("/dev/zero", [](OpenInfo&) {});
  expect_unserved("/proc/self/comm", [](OpenInfo&) {});
}

}  // namespace
}  // namespace penstock::engine::file_read_test
