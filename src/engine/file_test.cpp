// An open file, on threads: who is told what, and what the report says.
#include "engine/file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <string_view>
#include <thread>

#include "comm/thread_comm.hpp"
#include "engine/file_for_tests.hpp"
#include "engine/foreign_hints.hpp"
#include "io/async_file.hpp"
#include "io/faulty.hpp"
#include "io/temporary_file.hpp"

namespace penstock::engine::file_test {
namespace {

std::unique_ptr<File> open(comm::Comm& comm, const OpenInfo& info) {
  return File::open(comm::borrow(comm), info);
}

// Its fsync or close fails.
template <int sync_errno, int close_errno>
OpenedFile failing(OpenedFile inner) {
  io::FaultPlan plan;
  plan.sync_errno = sync_errno;
  plan.close_errno = close_errno;
  return std::make_unique<io::FaultyFile>(std::move(inner), plan);
}

OpenedFile full_at_1005(OpenedFile inner) {
  io::FaultPlan plan;
  plan.at_offset = 1005;
  plan.write_errno = ENOSPC;
  return std::make_unique<io::FaultyFile>(std::move(inner), plan);
}

TEST(File, ReportsEveryByteOnceAndTheAlgorithmThatRan) {
  const io::TemporaryFile file;
  comm::run_thread_team(3, [&](comm::Comm& comm) {
    OpenInfo info = info_for(file.path());
    info.config.method = *parse_method("two_phase(writers=2, cycle=4KiB)");
    auto f = open(comm, info);
    ASSERT_TRUE(f->served()) << f->why_unserved();
    const std::vector<char> data(5000, char('a' + comm.rank()));
    const WriteResult r = f->write_all(write_of(data, comm.rank() * 5000));
    EXPECT_EQ(r.agreed, ErrorClass::none);
    EXPECT_EQ(r.bytes, 5000);
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
    if (comm.rank() != 0) return;
    EXPECT_EQ(report.sum.engine_bytes, 15000);
    EXPECT_EQ(report.sum.passthrough_bytes, 0);
    EXPECT_EQ(report.algorithms, (std::map<std::string, int64_t>{{"two_phase", 3}}));
    EXPECT_EQ(report.ranks, 3);
    EXPECT_GT(report.application_rate, 0);
    EXPECT_TRUE(report.degraded.empty());
  });
  EXPECT_EQ(file.contents().size(), 15000u);
}

TEST(File, TellsTheHintsInEffectAndNotesWhatIsNot) {
  const io::TemporaryFile file;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    OpenInfo info = info_for(file.path());
    info.config.method = *parse_method("designated_writer(writer=7)");
    info.config.striping_unit_bytes = 65536;
    info.config.ignored_hints = {"hint x is ignored"};
    auto f = open(comm, info);
    ASSERT_TRUE(f->served()) << f->why_unserved();
    EXPECT_EQ(f->hints_in_effect().at("cb_nodes"), "1");
    EXPECT_EQ(f->hints_in_effect().count("striping_unit"), 1u);
    const std::vector<char> data(5000, 'x');
    EXPECT_EQ(f->write_all(write_of(data, comm.rank() * 5000)).bytes, 5000);
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
    if (comm.rank() != 0) return;
    EXPECT_EQ(report.algorithms, (std::map<std::string, int64_t>{{"designated_writer", 2}}));
    EXPECT_EQ(report.degraded.at("hint x is ignored"), 2);
    EXPECT_EQ(
        report.degraded.count("writer=7 is not among the file's 2 ranks: the last of them writes"),
        1u);
  });
  EXPECT_EQ(file.contents().size(), 10000u);
}

TEST(File, TellsNoHintsWhereTheLibraryServes) {
  const io::TemporaryFile file;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    OpenInfo info = info_for(file.path());
    info.opened_here = comm.rank() == 0;
    auto f = open(comm, info);
    EXPECT_TRUE(f->hints_in_effect().empty());
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
  });
}

TEST(File, ChoosesByTheRuleWhoShuffles) {
  const io::TemporaryFile file;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    auto f = open(comm, info_for(file.path()));
    const std::vector<char> data(4096, 'x');
    (void)f->write_all(write_of(data, comm.rank() * 4096));  // disjoint: individual
    const auto tile = layout::LoopTree::resized(layout::LoopTree::bytes(64), 0, 128);
    f->set_view(*layout::FileView::make(comm.rank() * 64, 1, *tile), "");
    (void)f->write_all(write_of(data, 0));  // interleaved: two_phase
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
    if (comm.rank() == 0) {
      EXPECT_EQ(report.algorithms,
                (std::map<std::string, int64_t>{{"individual", 2}, {"two_phase", 2}}));
    }
  });
}

TEST(File, AWriteMayBringItsOwnViewAndLeavesTheFilesAlone) {
  const io::TemporaryFile file;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    OpenInfo info = info_for(file.path());
    info.config.method = *parse_method("two_phase(writers=1, cycle=4KiB)");
    auto f = open(comm, info);
    const auto tile = layout::LoopTree::resized(layout::LoopTree::bytes(10), 0, 20);
    const auto own = *layout::FileView::make(comm.rank() * 10, 1, *tile);
    const std::vector<char> data(30, char('a' + comm.rank()));
    Write w = write_of(data, 0);
    w.view = &own;
    EXPECT_EQ(f->write_all(w).bytes, 30);  // 0 to 60, in turns
    w.position_bytes = 30;
    w.kind = CallKind::write_at;
    EXPECT_EQ(f->write(w).bytes, 30);                                           // 60 to 120, alone
    EXPECT_EQ(f->write_all(write_of(data, 120 + 30 * comm.rank())).bytes, 30);  // as ever
    EXPECT_EQ(f->view().displacement(), 0);
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
    if (comm.rank() == 0) {
      EXPECT_EQ(report.sum.strided_calls, 4);
      EXPECT_EQ(report.sum.contiguous_calls, 2);
    }
  });
  const std::string turns = std::string(10, 'a') + std::string(10, 'b');
  std::string expected;
  for (int i = 0; i < 6; ++i) expected += turns;
  expected += std::string(30, 'a') + std::string(30, 'b');
  std::string found;
  for (const std::byte b : file.contents()) found += char(b);
  EXPECT_EQ(found, expected);
}

TEST(File, GivesARanksOwnFailureWithItsDetail) {
  const io::TemporaryFile file;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    OpenInfo info = info_for(file.path());
    info.config.method.mechanism = &wrapped_pwrite<failing<EIO, ENOSPC>>();
    auto f = open(comm, info);
    const std::vector<char> data(10, 'x');
    Write w = write_of(data, comm.rank() * 10);
    if (comm.rank() == 1) w.argument_error = ErrorClass::argument;
    const WriteResult written = f->write_all(w);
    EXPECT_EQ(written.agreed, ErrorClass::argument);
    EXPECT_EQ(written.mine.has_value(), comm.rank() == 1);
    std::optional<Error> mine;
    EXPECT_EQ(f->sync(&mine), ErrorClass::io);
    EXPECT_TRUE(mine && mine->sys_errno == EIO);
    mine.reset();
    FileReport report;
    EXPECT_EQ(f->close(report, &mine), ErrorClass::io) << "of the sync, which stays lost";
    EXPECT_TRUE(mine && mine->sys_errno == EIO);
  });
}

TEST(File, GivesARanksOwnFailureToCloseWithItsDetail) {
  const io::TemporaryFile file;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    OpenInfo info = info_for(file.path());
    info.config.method.mechanism = &wrapped_pwrite<failing<0, ENOSPC>>();
    auto f = open(comm, info);
    std::optional<Error> mine;
    FileReport report;
    EXPECT_EQ(f->close(report, &mine), ErrorClass::no_space);
    EXPECT_TRUE(mine && mine->sys_errno == ENOSPC);
  });
}

// Rank 1 enters the collective write only when rank 0, which is in it, has written by itself in
// another thread: who holds one lock through both never ends.
TEST(File, AnIndependentWriteDoesNotWaitForACollectiveOne) {
  const io::TemporaryFile file;
  std::atomic<bool> entering = false, written = false;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    OpenInfo info = info_for(file.path());
    info.config.method = *parse_method("two_phase(writers=2, cycle=4KiB)");
    info.config.verify = true;
    auto f = open(comm, info);
    ASSERT_TRUE(f->served()) << f->why_unserved();
    const std::vector<char> data(5000, char('a' + comm.rank())), own(1000, 'z');
    std::thread other;
    if (comm.rank() == 0) {
      other = std::thread([&] {
        while (!entering) std::this_thread::yield();
        EXPECT_EQ(f->write(write_of(own, 20000)).agreed, ErrorClass::none);
        written = true;
      });
      entering = true;
    } else {
      while (!written) std::this_thread::yield();
    }
    EXPECT_EQ(f->write_all(write_of(data, comm.rank() * 5000)).agreed, ErrorClass::none);
    if (other.joinable()) other.join();
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
    if (comm.rank() == 0) {
      EXPECT_EQ(report.sum.engine_bytes, 11000);
      EXPECT_EQ(report.verified_bytes, 11000);
      EXPECT_GE(report.sum.file_writes, 3);
    }
  });
  const std::vector<std::byte> bytes = file.contents();
  ASSERT_EQ(bytes.size(), 21000u);
  EXPECT_EQ(std::count(bytes.begin() + 20000, bytes.end(), std::byte('z')), 1000);
}

TEST(File, PassesThroughWhenRanksAreConfiguredDifferently) {
  const io::TemporaryFile file;
  comm::run_thread_team(3, [&](comm::Comm& comm) {
    OpenInfo info = info_for(file.path());
    if (comm.rank() == 1) info.config.method = *parse_method("two_phase(writers=1)");
    auto f = open(comm, info);
    EXPECT_FALSE(f->served());
    EXPECT_EQ(f->why_unserved(), "ranks are configured with different methods");
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
  });
}

TEST(File, PassesThroughWhenRanksOpenedItDifferently) {
  const io::TemporaryFile file;
  comm::run_thread_team(3, [&](comm::Comm& comm) {
    OpenInfo info = info_for(file.path());
    info.readable = true;
    info.writable = comm.rank() == 0;
    auto f = open(comm, info);
    EXPECT_TRUE(f->serves_nothing());
    EXPECT_EQ(f->why_unserved(), comm.rank() == 0 ? "ranks opened it with different access modes"
                                                  : "not opened for writing");
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
  });
}

// Who opens one again may wait for ever for its other end.
TEST(File, PassesPipesThrough) {
  const io::TemporaryFile file;
  ASSERT_EQ(::unlink(file.path().c_str()), 0);
  ASSERT_EQ(::mkfifo(file.path().c_str(), 0600), 0);
  for (const bool writes : {false, true})
    comm::run_thread_team(2, [&](comm::Comm& comm) {
      OpenInfo info = info_for(file.path());
      info.readable = !writes;
      info.writable = writes;
      auto f = open(comm, info);
      EXPECT_TRUE(f->serves_nothing());
      FileReport report;
      EXPECT_EQ(f->close(report), ErrorClass::none);
    });
}

TEST(File, TellsEveryRankWhenFsyncFails) {
  const io::TemporaryFile file;
  comm::run_thread_team(3, [&](comm::Comm& comm) {
    OpenInfo info = info_for(file.path());
    info.config.method.mechanism = &wrapped_pwrite<failing<EIO, 0>>();
    auto f = open(comm, info);
    ASSERT_TRUE(f->served()) << f->why_unserved();
    const std::vector<char> data(100, 'x');
    EXPECT_EQ(f->write_all(write_of(data, 100 * comm.rank())).agreed, ErrorClass::none);
    EXPECT_EQ(f->sync(), ErrorClass::io);
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::io) << "what was lost stays lost";
    if (comm.rank() == 0) {
      EXPECT_EQ(report.sum.errors, 6);
      EXPECT_NE(report.first_error, "");
      EXPECT_NE(report.actual_rate_source, "fsync");
    }
  });
}

TEST(File, TellsEveryRankWhenCloseFails) {
  const io::TemporaryFile file;
  comm::run_thread_team(3, [&](comm::Comm& comm) {
    OpenInfo info = info_for(file.path());
    info.config.method.mechanism = &wrapped_pwrite<failing<0, ENOSPC>>();
    auto f = open(comm, info);
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::no_space);
  });
}

TEST(File, TheSyncPolicyEndMakesCloseReportAFailingFsync) {
  const io::TemporaryFile file;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    OpenInfo info = info_for(file.path());
    info.config.method.mechanism = &wrapped_pwrite<failing<EIO, 0>>();
    info.config.method.sync = io::find_sync_policy("end");
    auto f = open(comm, info);
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::io);
  });
}

TEST(File, PassesAllRanksThroughWhenOneCannotBeServed) {
  const io::TemporaryFile file;
  comm::run_thread_team(3, [&](comm::Comm& comm) {
    OpenInfo info = info_for(file.path());
    info.opened_here = comm.rank() != 2;
    auto f = open(comm, info);
    EXPECT_FALSE(f->served());
    EXPECT_NE(f->why_unserved(), "");
    f->passed_through(CallKind::write_at, 77, 0.001, "write_at");
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
    if (comm.rank() == 0) {
      EXPECT_EQ(report.sum.passthrough_bytes, 3 * 77);
      EXPECT_FALSE(report.degraded.empty());
    }
  });
}

TEST(File, TellsWhatWentWrongInACallOfTheLibrary) {
  const io::TemporaryFile file;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    auto f = open(comm, info_for(file.path()));
    const Error refused{ErrorClass::access, 0, "MPI_File_write_shared", "Access denied"};
    if (comm.rank() == 1) f->passed_through(CallKind::write, 0, 0, "write_shared", refused);
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
    if (comm.rank() != 0) return;
    EXPECT_EQ(report.sum.errors, 1);
    EXPECT_EQ(report.first_error, "rank 1: MPI_File_write_shared: Access denied");
  });
}

TEST(File, AViewThatIsNotMonotoneOnOneRankIsPassedThroughOnAllUntilTheNext) {
  const io::TemporaryFile file;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    auto f = open(comm, info_for(file.path()));
    const auto overlapping = layout::LoopTree::resized(layout::LoopTree::bytes(64), 0, 32);
    f->set_view(comm.rank() == 1 ? *layout::FileView::make(0, 1, *overlapping) : layout::FileView(),
                "");
    EXPECT_FALSE(f->served());
    f->set_view(layout::FileView(), "");
    EXPECT_TRUE(f->served());
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
  });
}

TEST(File, AViewThatIsServedInPartLimitsItsOwnRankAloneAndAllRanksTogether) {
  const io::TemporaryFile file;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    auto f = open(comm, info_for(file.path()));
    const bool limited = comm.rank() == 1;
    f->set_view(layout::FileView(), "", limited ? 64 : kWholeStream);
    EXPECT_TRUE(f->served());
    EXPECT_TRUE(f->view_is_limited());
    EXPECT_TRUE(f->keeps_to_view(64, Company::alone));
    EXPECT_EQ(f->keeps_to_view(65, Company::alone), !limited);
    EXPECT_TRUE(f->keeps_to_view(limited ? 64 : 1000, Company::together));
    EXPECT_FALSE(f->keeps_to_view(65, Company::together));
    f->set_view(layout::FileView(), "");
    EXPECT_FALSE(f->view_is_limited());
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
  });
}

// PnetCDF hands cb_nodes of the file of all ranks on to its file of one.
TEST(File, SaysThatWritersAreMoreThanRanksWhereAMethodNamedThemNotOfAHandedOnHint) {
  const io::TemporaryFile file;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    for (const char* method : {"two_phase", "two_phase(writers=2)"}) {
      OpenInfo info = info_for(file.path());
      ASSERT_TRUE(apply_setting("method", method, info.config));
      apply_foreign_hints({{"cb_nodes", "2"}}, info.config);
      ASSERT_EQ(info.config.method.parameters.writers, 2);
      info.config.given = {{"method", method, "--method", Layer::option}};
      FileReport report;
      EXPECT_EQ(open(comm, info)->close(report), ErrorClass::none);
      EXPECT_EQ(report.degraded.size(), std::string_view(method) == "two_phase" ? 0u : 1u);
    }
  });
}

TEST(File, CountsWholeEtypesInTheStatus) {
  const io::TemporaryFile file;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    OpenInfo info = info_for(file.path());
    info.config.method.mechanism = &wrapped_pwrite<full_at_1005>();
    auto f = open(comm, info);
    f->set_view(*layout::FileView::make(0, 8, layout::LoopTree::bytes(8)), "");
    const std::vector<char> data(2000, 'x');
    const WriteResult r = f->write(write_of(data, 0, CallKind::write_at));
    EXPECT_EQ(r.agreed, ErrorClass::no_space);
    EXPECT_EQ(r.bytes, 1000);
    FileReport report;
    (void)f->close(report);
    EXPECT_EQ(report.sum.engine_bytes, 1005);
  });
  EXPECT_EQ(file.contents().size(), 1005u);
}

TEST(File, HandsTheMethodsOptionsToTheMechanismAndReportsWhatThatOneCannotDo) {
  static io::OpenRequest asked;
  static const io::Mechanism lame{
      .name = "lame",
      .summary = "",
      .alignment_bytes = 1,
      .writes_file = true,
      .takes_direct = true,
      .default_depth = 4,
      .unavailable = nullptr,
      .open = [](const io::OpenRequest& r) -> Result<std::unique_ptr<io::MechanismFile>> {
        asked = r;
        return io::open_async(r, 4, [](int) -> Result<std::unique_ptr<io::WriteQueue>> {
          return fail(ErrorClass::unsupported, "queue", "none here");
        });
      }};
  const io::TemporaryFile file;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    OpenInfo info = info_for(file.path());
    info.config.method = *parse_method("two_phase");
    info.config.method.mechanism = &lame;
    info.config.method.direct = io::Direct::always;
    info.config.method.depth = 7;
    auto f = open(comm, info);
    ASSERT_TRUE(f->served()) << f->why_unserved();
    EXPECT_EQ(asked.direct, io::Direct::always);
    EXPECT_EQ(asked.depth, 7);
    EXPECT_EQ(f->write_all(write_of(std::vector<char>(5000, 'x'), 0)).bytes, 5000);
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
    ASSERT_EQ(report.degraded.size(), 1u);
    EXPECT_NE(report.degraded.begin()->first.find("lame: each write blocks: queue: none here"),
              std::string::npos);
    EXPECT_NE(report.method.find("lame(direct, depth=7)"), std::string::npos);
  });
  EXPECT_EQ(file.contents(), std::vector<std::byte>(5000, std::byte('x')));
}

TEST(File, EmptiesWhatItHasOpenWhateverItsNameLeadsToByNow) {
  const io::TemporaryFile file, other;
  for (const auto* f : {&file, &other}) ASSERT_EQ(::truncate(f->path().c_str(), 1000), 0);
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    auto f = open(comm, info_for(file.path()));
    const std::string kept = file.path() + ".kept";
    ASSERT_EQ(::link(file.path().c_str(), kept.c_str()), 0);
    ASSERT_EQ(::rename(other.path().c_str(), file.path().c_str()), 0);
    EXPECT_TRUE(f->empty());
    struct stat at_name {
    }, at_kept{};
    EXPECT_EQ(::stat(file.path().c_str(), &at_name), 0);
    EXPECT_EQ(::stat(kept.c_str(), &at_kept), 0);
    EXPECT_EQ(::unlink(kept.c_str()), 0);
    EXPECT_EQ(at_name.st_size, 1000);
    EXPECT_EQ(at_kept.st_size, 0);
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
  });
}

TEST(Files, LeftAloneSayWhyInTheReport) {
  const io::TemporaryFile file;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    OpenInfo info = info_for(file.path());
    ASSERT_TRUE(apply_toml("[[file]]\npattern = '*'\nmethod = 'off'\n", info.config, "site.toml"));
    info.config = *for_file(info.config, info.path);
    auto f = open(comm, info);
    EXPECT_FALSE(f->served());
    f->passed_through(CallKind::write, 100, 0.1, "write");
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
    EXPECT_EQ(report.method, "off");
    EXPECT_EQ(report.degraded.at("left alone by [[file]] \"*\" (site.toml:1)"), 1);
  });
}

}  // namespace
}  // namespace penstock::engine::file_test
