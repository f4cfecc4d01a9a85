// --verify: what is read back at close, and which differences are damage.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "comm/thread_comm.hpp"
#include "engine/file_for_tests.hpp"
#include "io/temporary_file.hpp"

namespace penstock::engine::verify_test {
namespace {

// Writes, lets somebody damage the file, and closes; gives what rank 0's report says.
FileReport verified(int damage_at, bool rewrite) {
  const io::TemporaryFile file;
  FileReport of_rank_0;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    OpenInfo info = info_for(file.path());
    info.config.verify = true;
    auto f = File::open(comm::borrow(comm), info);
    const std::vector<char> data(10000, char('a' + comm.rank()));
    (void)f->write_all(write_of(data, comm.rank() * 10000));
    if (rewrite && comm.rank() == 1) (void)f->write(write_of(data, 5000, CallKind::write_at));
    (void)comm.barrier();
    if (damage_at >= 0 && comm.rank() == 0) {
      const int fd = ::open(file.path().c_str(), O_WRONLY);
      EXPECT_EQ(::pwrite(fd, "!", 1, damage_at), 1);
      ::close(fd);
    }
    FileReport report;
    const ErrorClass told = f->close(report);
    EXPECT_EQ(told, damage_at >= 0 ? ErrorClass::io : ErrorClass::none);
    if (comm.rank() == 0) of_rank_0 = report;
  });
  return of_rank_0;
}

TEST(Verify, FindsAllBytesThatAreAsWritten) {
  const FileReport r = verified(-1, false);
  EXPECT_EQ(r.verified_bytes, 20000);
  EXPECT_EQ(r.mismatched_bytes, 0);
}

// Ranks of several nodes may have read several configurations; verification is collective.
TEST(Verify, IsDoneByAllWhereOneRankAsksForIt) {
  const io::TemporaryFile file;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    OpenInfo info = info_for(file.path());
    info.config.verify = comm.rank() == 1;
    auto f = File::open(comm::borrow(comm), info);
    EXPECT_TRUE(f->config().verify);
    const std::vector<char> data(1000, 'x');
    (void)f->write_all(write_of(data, comm.rank() * 1000));
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
    if (comm.rank() == 0) {
      EXPECT_EQ(report.verified_bytes, 2000);
    }
  });
}

// Programs write under another name and rename, or remove the name of a file of theirs.
TEST(Verify, ReadsTheFileThatWasWrittenWhateverHasItsName) {
  const io::TemporaryFile file;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    OpenInfo info = info_for(file.path());
    info.config.verify = true;
    auto f = File::open(comm::borrow(comm), info);
    const std::vector<char> data(1000, 'x');
    (void)f->write_all(write_of(data, comm.rank() * 1000));
    (void)comm.barrier();
    if (comm.rank() == 0) {
      std::remove(file.path().c_str());
      std::ofstream(file.path()) << "another";
    }
    (void)comm.barrier();
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
    if (comm.rank() != 0) return;
    EXPECT_EQ(report.verified_bytes, 2000);
    EXPECT_EQ(report.unverified_bytes, 0);
  });
}

TEST(Verify, FindsAByteThatSomebodyChangedAndTellsEveryRank) {
  EXPECT_GT(verified(12345, false).mismatched_bytes, 0);
}

TEST(Verify, DoesNotTakeAnotherRanksLaterWriteForDamage) {
  const FileReport r = verified(-1, true);
  EXPECT_EQ(r.mismatched_bytes, 0);
  EXPECT_GT(r.unverified_bytes, 0);
}

// PnetCDF has a handle of all ranks, and one of each.
template <class Body>
void with_own_handles(Body&& body) {
  const io::TemporaryFile file;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    OpenInfo info = info_for(file.path());
    info.config.verify = true;
    auto all = File::open(comm::borrow(comm), info);
    info.beside = {all.get()};
    auto alone = comm::make_thread_team(1);
    auto one = File::open(std::move(alone.front()), info);
    body(comm, *all, *one, file.path());
  });
}

void rewrite_by_another_handle(bool damaged) {
  with_own_handles([&](comm::Comm& comm, File& all, File& one, const std::string& path) {
    const std::vector<char> data(1000, 'x'), other(10, 'y');
    (void)all.write_all(write_of(data, comm.rank() * 1000));
    if (comm.rank() == 1) (void)one.write(write_of(other, 500, CallKind::write_at));
    (void)comm.barrier();
    if (damaged && comm.rank() == 0) {
      const int fd = ::open(path.c_str(), O_WRONLY);
      EXPECT_EQ(::pwrite(fd, "!", 1, 1500), 1);
      ::close(fd);
    }
    (void)comm.barrier();
    FileReport report;
    EXPECT_EQ(one.close(report), ErrorClass::none);
    EXPECT_EQ(all.close(report), damaged ? ErrorClass::io : ErrorClass::none);
    if (comm.rank() != 0) return;
    EXPECT_EQ(report.unverified_bytes, 1000);
    EXPECT_EQ(report.mismatched_bytes, damaged ? 1000 : 0);
  });
}

TEST(Verify, DoesNotTakeAnotherHandlesLaterWriteForDamage) { rewrite_by_another_handle(false); }

TEST(Verify, FindsDamageBesideWhatAnotherHandleWrote) { rewrite_by_another_handle(true); }

// Whom rank 1's own handle cannot ask.
TEST(Verify, DoesNotTakeAnotherProcessesLaterWriteForDamage) {
  with_own_handles([](comm::Comm& comm, File& all, File& one, const std::string&) {
    const std::vector<char> first(100, 'x'), later(100, 'y');
    if (comm.rank() == 1) (void)one.write(write_of(first, 0, CallKind::write_at));
    EXPECT_EQ(one.sync(), ErrorClass::none);
    (void)comm.barrier();
    if (comm.rank() == 0) (void)all.write(write_of(later, 0, CallKind::write_at));
    EXPECT_EQ(all.sync(), ErrorClass::none);
    FileReport report;
    EXPECT_EQ(one.close(report), ErrorClass::none);
    EXPECT_EQ(report.unverified_bytes, comm.rank() == 1 ? 100 : 0);
    EXPECT_EQ(all.close(report), ErrorClass::none);
  });
}

// What is remembered of rank 1's first write goes with its second; that it was made does not.
TEST(Verify, DoesNotForgetWhatWasWrittenAgainInPart) {
  const io::TemporaryFile file;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    OpenInfo info = info_for(file.path());
    info.config.verify = true;
    auto f = File::open(comm::borrow(comm), info);
    const std::vector<char> five(5, 'a'), hundred(100, 'b'), ten(10, 'c');
    if (comm.rank() == 0) (void)f->write(write_of(five, 0, CallKind::write_at));
    (void)comm.barrier();
    if (comm.rank() == 1) {
      (void)f->write(write_of(hundred, 0, CallKind::write_at));
      (void)f->write(write_of(ten, 50, CallKind::write_at));
    }
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
    if (comm.rank() != 0) return;
    EXPECT_EQ(report.mismatched_bytes, 0);
    EXPECT_EQ(report.verified_bytes, 10);
  });
}

}  // namespace
}  // namespace penstock::engine::verify_test
