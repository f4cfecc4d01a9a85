// --verify: what is read back at close, and which differences are damage.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "comm/thread_comm.hpp"
#include "engine/file_for_tests.hpp"
#include "io/temporary_file.hpp"

namespace penstock::engine::verify_test {
namespace {

std::unique_ptr<File> open_verified(comm::Comm& comm, const std::string& path) {
  OpenInfo info = info_for(path);
  info.config.verify = true;
  return File::open(comm::borrow(comm), info);
}

void damage(const std::string& path, int at) {
  const int fd = ::open(path.c_str(), O_WRONLY);
  EXPECT_EQ(::pwrite(fd, "!", 1, at), 1);
  ::close(fd);
}

// Writes, lets somebody damage the file, and closes; gives what rank 0's report says.
FileReport verified(int damage_at, bool rewrite) {
  const io::TemporaryFile file;
  FileReport of_rank_0;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    auto f = open_verified(comm, file.path());
    const std::vector<char> data(10000, char('a' + comm.rank()));
    (void)f->write_all(write_of(data, comm.rank() * 10000));
    if (rewrite && comm.rank() == 1) (void)f->write(write_of(data, 5000, CallKind::write_at));
    (void)comm.barrier();
    if (damage_at >= 0 && comm.rank() == 0) damage(file.path(), damage_at);
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
    auto f = open_verified(comm, file.path());
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
    if (damaged && comm.rank() == 0) damage(path, 1500);
    (void)comm.barrier();
    FileReport report;
    EXPECT_EQ(one.close(report), ErrorClass::none);
    EXPECT_EQ(all.close(report), damaged ? ErrorClass::io : ErrorClass::none);
    if (comm.rank() != 0) return;
    EXPECT_EQ(report.unverified_bytes, 64);
    EXPECT_EQ(report.mismatched_bytes, damaged ? 64 : 0);
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

// Of rank 1's first write the block goes that its second covers in part; that it was made does not.
TEST(Verify, DoesNotForgetWhatWasWrittenAgainInPart) {
  const io::TemporaryFile file;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    auto f = open_verified(comm, file.path());
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
    EXPECT_EQ(report.verified_bytes, 100 - 64 + 10);
  });
}

// One rank writes a part again; then somebody damages a byte: of the rest, or none.
FileReport rewritten_in_part(int damage_at) {
  const io::TemporaryFile file;
  OpenInfo info = info_for(file.path());
  info.config.verify = true;
  auto alone = comm::make_thread_team(1);
  auto f = File::open(std::move(alone.front()), info);
  const std::vector<char> data(200000, 'a'), part(1000, 'b');
  (void)f->write(write_of(data, 0, CallKind::write_at));
  (void)f->write(write_of(part, 100000, CallKind::write_at));
  if (damage_at >= 0) damage(file.path(), damage_at);
  FileReport report;
  (void)f->close(report);
  return report;
}

TEST(Verify, RemembersTheRestOfWhatIsWrittenAgainInPart) {
  const FileReport r = rewritten_in_part(-1);
  EXPECT_EQ(r.verified_bytes + r.unverified_bytes, 200000);
  EXPECT_GT(r.unverified_bytes, 0);
  EXPECT_LE(r.unverified_bytes, 2 * 63);
  EXPECT_EQ(r.mismatched_bytes, 0);
}

TEST(Verify, FindsDamageInTheRestOfWhatIsWrittenAgainInPart) {
  for (const int at : {0, 99800, 101200, 199999})
    EXPECT_GT(rewritten_in_part(at).mismatched_bytes, 0) << at;
}

// More differing extents than ranks ask about at once.
TEST(Verify, AsksAboutEveryDifference) {
  const io::TemporaryFile file;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    auto f = open_verified(comm, file.path());
    const std::vector<char> a(4, 'a'), all(50000, 'b');
    for (int i = 0; comm.rank() == 0 && i < 5000; ++i)
      (void)f->write(write_of(a, 10 * i, CallKind::write_at));
    EXPECT_EQ(f->sync(), ErrorClass::none);
    (void)comm.barrier();
    if (comm.rank() == 1) (void)f->write(write_of(all, 0, CallKind::write_at));
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
    if (comm.rank() != 0) return;
    EXPECT_EQ(report.mismatched_bytes, 0);
    EXPECT_EQ(report.unverified_bytes, 20000);
  });
}

// Blocks of `block` bytes, each rank's between those of the others.
layout::FileView interleaved(const comm::Comm& comm, int64_t block) {
  const layout::LoopTree one = layout::LoopTree::bytes(block);
  return layout::FileView::make(comm.rank() * block, 1,
                                *layout::LoopTree::resized(one, 0, comm.size() * block))
      .value();
}

// Every other byte of it.
Write with_holes_in_memory(const std::vector<char>& data) {
  Write w = write_of(data, 0);
  w.memory_type = *layout::LoopTree::resized(layout::LoopTree::bytes(1), 0, 2);
  w.memory_count /= 2;
  return w;
}

// What four ranks hand over in pieces, of memory and of the file. `damage_at`: of the file.
FileReport in_pieces(int64_t block, int damage_at, const char* method) {
  const io::TemporaryFile file;
  FileReport of_rank_0;
  comm::run_thread_team(4, [&](comm::Comm& comm) {
    OpenInfo info = info_for(file.path());
    info.config.verify = true;
    info.config.method = parse_method(method).value();
    auto f = File::open(comm::borrow(comm), info);
    f->set_view(interleaved(comm, block), "");
    std::vector<char> data(20000);
    for (size_t i = 0; i < data.size(); ++i)
      data[i] = char(1 + (i * 7 + size_t(comm.rank())) % 255);
    EXPECT_EQ(f->write_all(with_holes_in_memory(data)).agreed, ErrorClass::none);
    (void)comm.barrier();
    if (damage_at >= 0 && comm.rank() == 0) damage(file.path(), damage_at);
    FileReport report;
    EXPECT_EQ(f->close(report), damage_at >= 0 ? ErrorClass::io : ErrorClass::none);
    if (comm.rank() == 0) of_rank_0 = report;
  });
  return of_rank_0;
}

TEST(Verify, ReadsBackWhatEachRankHandedOverInPieces) {
  for (const char* method : {"two_phase", "two_phase+messages", "individual"})
    for (const int64_t block : {1, 8, 1000}) {
      const FileReport r = in_pieces(block, -1, method);
      EXPECT_EQ(r.verified_bytes, 40000) << method << ' ' << block;
      EXPECT_EQ(r.unverified_bytes, 0) << method << ' ' << block;
    }
}

// Whose bytes lie in pages that others write, when they return.
TEST(Verify, ReadsBackWhatWentBehind) {
  const io::TemporaryFile file;
  comm::run_thread_team(4, [&](comm::Comm& comm) {
    OpenInfo info = info_for(file.path());
    info.may_defer = true;
    info.config.verify = true;
    auto f = File::open(comm::borrow(comm), info);
    f->set_view(interleaved(comm, 1000), "");
    const std::vector<char> first(3000, 'a'), later(5000, 'b');
    EXPECT_EQ(f->write(write_of(first, 0, CallKind::write_at)).agreed, ErrorClass::none);
    for (int64_t at = 3000; at < 8000; at += 500)
      EXPECT_TRUE(
          f->write_piece({CallKind::write_at, at,
                          std::as_bytes(std::span(later)).subspan(size_t(at - 3000), 500)}));
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
    if (comm.rank() != 0) return;
    EXPECT_EQ(report.sum.staged_bytes, 32000);
    EXPECT_EQ(report.verified_bytes, 32000);
    EXPECT_EQ(report.unverified_bytes, 0);
  });
}

TEST(Verify, FindsTheBlockOfWhoseByteWasDamaged) {
  for (const int64_t block : {1, 8, 1000})
    EXPECT_EQ(in_pieces(block, 12345, "two_phase").mismatched_bytes, 64) << block;
}

// A rank's later call through another view; the blocks that it has no byte of stay verified.
TEST(Verify, DoesNotTakeForDamageWhatARankWritesAgainThroughAnotherView) {
  const io::TemporaryFile file;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    auto f = open_verified(comm, file.path());
    const std::vector<char> first(64000, 'a'), later(10, 'b');
    f->set_view(interleaved(comm, 8), "");
    (void)f->write_all(write_of(first, 0));
    f->set_view({}, "");
    if (comm.rank() == 1) (void)f->write(write_of(later, 1000, CallKind::write_at));
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
    if (comm.rank() != 0) return;
    EXPECT_EQ(report.mismatched_bytes, 0);
    EXPECT_EQ(report.unverified_bytes, 2 * 64 - 8);  // a block of each rank's, 8 bytes for good
    EXPECT_EQ(report.verified_bytes, 128000 + 10 - 2 * 64);
  });
}

// Its bytes are compared with what the program's memory held when it began.
TEST(Verify, ReadsBackWhatWasHandedOverInHalves) {
  const io::TemporaryFile file;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    auto f = open_verified(comm, file.path());
    std::vector<char> data(5000, 'a');
    f->begin_write_all(write_of(data, comm.rank() * 5000));
    (void)f->end_write_all();
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
    if (comm.rank() != 0) return;
    EXPECT_EQ(report.verified_bytes, 10000);
    EXPECT_EQ(report.unverified_bytes, 0);
  });
}

OpenedFile full_at_5000(OpenedFile inner) {
  return std::make_unique<io::FaultyFile>(std::move(inner),
                                          io::FaultPlan{.at_offset = 5000, .write_errno = ENOSPC});
}

OpenInfo verified_until_full(const io::TemporaryFile& file) {
  OpenInfo info = info_for(file.path());
  info.config.verify = true;
  info.config.method.mechanism = &wrapped_pwrite<full_at_5000>();
  return info;
}

// Every rank was told; nobody is told of damage on top of it.
TEST(Verify, LeavesUnverifiedWhatACallThatFailedBrought) {
  const io::TemporaryFile file;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    auto f = File::open(comm::borrow(comm), verified_until_full(file));
    const std::vector<char> data(5000, 'a');
    EXPECT_EQ(f->write_all(write_of(data, comm.rank() * 5000)).agreed, ErrorClass::no_space);
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
    if (comm.rank() != 0) return;
    EXPECT_EQ(report.verified_bytes, 0);
    EXPECT_EQ(report.unverified_bytes, 10000);
    EXPECT_EQ(report.mismatched_bytes, 0);
  });
}

// The kernel says so of a write; whoever looks at it dies.
TEST(Verify, DoesNotLookAtMemoryThatCannotBeRead) {
  constexpr size_t kGood = 64 << 10;
  const io::TemporaryFile file;
  void* const memory = ::mmap(nullptr, 2 * kGood, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(::mprotect(static_cast<std::byte*>(memory) + kGood, kGood, PROT_NONE), 0);
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    auto f = open_verified(comm, file.path());
    Write w = write_of({}, 0, CallKind::write_at);
    w.memory = memory;
    w.memory_count = 2 * kGood;
    const WriteResult result = f->write(w);
    EXPECT_TRUE(result.mine && result.mine->sys_errno == EFAULT);
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
    EXPECT_EQ(report.unverified_bytes, int64_t(2 * kGood));
  });
  ::munmap(memory, 2 * kGood);
}

// A rank that brought nothing ends no other call of its own with it.
TEST(Verify, LeavesUnverifiedWhatFailedBetweenTheHalvesOfACallThatBroughtNothing) {
  const io::TemporaryFile file;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    auto f = File::open(comm::borrow(comm), verified_until_full(file));
    const std::vector<char> data(1000, 'a');
    f->begin_write_all(comm.rank() == 0 ? write_of(data, 0) : write_of({}, 0));
    if (comm.rank() == 1)
      EXPECT_NE(f->write(write_of(data, 5000, CallKind::write_at)).agreed, ErrorClass::none);
    (void)f->end_write_all();
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
    if (comm.rank() != 0) return;
    EXPECT_EQ(report.verified_bytes, 1000);
    EXPECT_EQ(report.unverified_bytes, 1000);
    EXPECT_EQ(report.mismatched_bytes, 0);
  });
}

// Far apart, and further than one reads at once.
TEST(Verify, ReadsBackPiecesThatLieFarApart) {
  const io::TemporaryFile file;
  auto alone = comm::make_thread_team(1);
  OpenInfo info = info_for(file.path());
  info.config.verify = true;
  auto f = File::open(std::move(alone.front()), info);
  const layout::LoopTree piece = layout::LoopTree::bytes(8);
  f->set_view(layout::FileView::make(0, 1, *layout::LoopTree::resized(piece, 0, 3'000'000)).value(),
              "");
  const std::vector<char> data(808, 'a');
  (void)f->write(write_of(data, 0, CallKind::write_at));
  FileReport report;
  EXPECT_EQ(f->close(report), ErrorClass::none);
  EXPECT_EQ(report.verified_bytes, 808);
}

// Two handles of both ranks; `change` alters the file in a way that only `beside` knows of.
template <class Change>
void with_two_handles(bool changed_before_open, ErrorClass expected, Change&& change) {
  const io::TemporaryFile file;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    OpenInfo info = info_for(file.path());
    info.config.verify = true;
    auto beside = File::open(comm::borrow(comm), info);
    info.beside = {beside.get()};
    if (changed_before_open) beside->passed_through(CallKind::other, 0, 0, "set_size");
    auto f = File::open(comm::borrow(comm), info);
    const std::vector<char> data(1000, char('a' + comm.rank()));
    (void)f->write_all(write_of(data, comm.rank() * 1000));
    (void)comm.barrier();
    change(comm, *beside, file.path());
    (void)comm.barrier();
    FileReport report;
    EXPECT_EQ(f->close(report), expected);
    if (comm.rank() == 0) {
      EXPECT_EQ(report.mismatched_bytes > 0, expected != ErrorClass::none);
    }
    EXPECT_EQ(beside->close(report), ErrorClass::none);
  });
}

void cut(const std::string& path) { EXPECT_EQ(::truncate(path.c_str(), 10), 0); }

TEST(Verify, DoesNotTakeForDamageThatAnotherHandleCutTheFile) {
  with_two_handles(false, ErrorClass::none, [](comm::Comm& comm, File& beside, const auto& path) {
    if (comm.rank() == 0) cut(path);
    beside.passed_through(CallKind::other, 0, 0, "set_size");
  });
}

TEST(Verify, DoesNotTakeForDamageWhatTheLibraryWroteThroughAnotherHandle) {
  with_two_handles(false, ErrorClass::none, [](comm::Comm& comm, File& beside, const auto& path) {
    if (comm.rank() == 0) cut(path);
    if (comm.rank() == 1) beside.passed_through(CallKind::write, 10, 0, "write_shared");
  });
}

TEST(Verify, FindsDamageThoughTheFileWasCutBeforeItWasOpened) {
  with_two_handles(true, ErrorClass::io, [](comm::Comm& comm, File&, const std::string& path) {
    if (comm.rank() == 0) cut(path);
  });
}

// A half of the job has the file, and so may the other, whom nobody can ask.
void of_half_the_job(int job_ranks, bool expected_damage) {
  const io::TemporaryFile file;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    OpenInfo info = info_for(file.path());
    info.config.verify = true;
    info.job_ranks = job_ranks;
    auto f = File::open(comm::borrow(comm), info);
    const std::vector<char> data(1000, 'x');
    (void)f->write_all(write_of(data, comm.rank() * 1000));
    (void)comm.barrier();
    if (comm.rank() == 0) cut(file.path());
    (void)comm.barrier();
    FileReport report;
    EXPECT_EQ(f->close(report), expected_damage ? ErrorClass::io : ErrorClass::none);
    if (comm.rank() != 0) return;
    EXPECT_EQ(report.mismatched_bytes > 0, expected_damage);
    EXPECT_EQ(report.unverified_bytes > 0, !expected_damage);
    EXPECT_EQ(report.degraded.empty(), expected_damage);
  });
}

TEST(Verify, DoesNotTakeForDamageWhatTheRestOfTheJobMayHaveWritten) { of_half_the_job(4, false); }

TEST(Verify, FindsDamageWhereAllOfTheJobHaveTheFile) { of_half_the_job(2, true); }

}  // namespace
}  // namespace penstock::engine::verify_test
