// Independent writes that an open file defers: which calls wait for them, when they are deferred at
// all, and who is told of what was lost.
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "comm/thread_comm.hpp"
#include "engine/file_for_tests.hpp"
#include "io/eventually.hpp"
#include "io/faulty.hpp"
#include "io/temporary_file.hpp"

namespace penstock::engine::file_behind_test {
namespace {

constexpr int64_t kBytes = 5000;

io::FaultPlan faults;

const io::Mechanism& mechanism_for_tests() {
  static const io::Mechanism m{
      .name = "for_tests",
      .summary = "",
      .alignment_bytes = 1,
      .writes_file = true,
      .unavailable = nullptr,
      .open = [](const io::OpenRequest& r) -> Result<std::unique_ptr<io::MechanismFile>> {
        auto inner = io::find_mechanism("pwrite")->open(r);
        if (!inner) return tl::unexpected(inner.error());
        return std::make_unique<io::FaultyFile>(*std::move(inner), faults);
      }};
  return m;
}

OpenInfo write_only(const std::string& path) {
  OpenInfo info = info_for(path);
  info.may_defer = true;
  info.config.method = *parse_method("two_phase");
  info.config.method.mechanism = &mechanism_for_tests();
  return info;
}

class FileBehind : public testing::Test {
 protected:
  void SetUp() override { faults = {}; }

  // One rank that writes 'a'; how many bytes are in the file then, and after `next`.
  template <class Next>
  void expect_in_file_after(const OpenInfo& info, int64_t before, Next&& next) {
    comm::run_thread_team(1, [&](comm::Comm& comm) {
      auto f = File::open(comm::borrow(comm), info);
      const std::vector<char> data(kBytes, 'a');
      EXPECT_EQ(f->write(write_of(data, 0, CallKind::write_at)).bytes, kBytes);
      EXPECT_EQ(path_.contents().size(), size_t(before));
      next(*f);
      EXPECT_EQ(path_.contents().size(), size_t(kBytes));
      FileReport report;
      EXPECT_EQ(f->close(report), ErrorClass::none);
      EXPECT_GE(report.sum.engine_bytes, kBytes);
      EXPECT_EQ(report.sum.passthrough_bytes, 0);
    });
  }

  const io::TemporaryFile path_;
};

TEST_F(FileBehind, AWriteIsAcceptedAndInTheFileAfterAFlush) {
  expect_in_file_after(write_only(path_.path()), 0,
                       [](File& f) { EXPECT_EQ(f.flush(Drain::mine), ErrorClass::none); });
}

TEST_F(FileBehind, TheEndIsKnownWithoutAFlush) {
  expect_in_file_after(write_only(path_.path()), 0, [&](File& f) {
    EXPECT_EQ(f.flush(Drain::lane), ErrorClass::none);
    EXPECT_EQ(f.accepted_end(), kBytes);
    EXPECT_EQ(path_.contents().size(), 0);
    EXPECT_EQ(f.flush(Drain::mine), ErrorClass::none);
    EXPECT_EQ(f.accepted_end(), 0);
  });
}

TEST_F(FileBehind, NothingStaysBehindForLong) {
  OpenInfo info = write_only(path_.path());
  info.config.write_behind_seconds = 1;
  expect_in_file_after(info, 0, [&](File&) {
    EXPECT_TRUE(io::eventually([&] { return path_.contents().size() == size_t(kBytes); }));
  });
}

TEST_F(FileBehind, ASyncWaitsForIt) {
  expect_in_file_after(write_only(path_.path()), 0,
                       [](File& f) { EXPECT_EQ(f.sync(), ErrorClass::none); });
}

TEST_F(FileBehind, ACollectiveWriteWaitsForIt) {
  expect_in_file_after(write_only(path_.path()), 0, [](File& f) {
    EXPECT_EQ(f.write_all(write_of({}, 0, CallKind::write_at_all)).agreed, ErrorClass::none);
  });
}

TEST_F(FileBehind, ASplitCollectiveWriteComesBehindIt) {
  expect_in_file_after(write_only(path_.path()), 0, [](File& f) {
    f.begin_write_all(write_of({}, 0, CallKind::write_at_all));
    EXPECT_EQ(f.end_write_all().agreed, ErrorClass::none);
  });
}

// Two ranks' second handle: pages are shared with a handle of one rank alone.
TEST_F(FileBehind, AnotherHandleEndsIt) {
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    auto f = File::open(comm::borrow(comm), write_only(path_.path()));
    const Off mine = comm.rank() * kBytes;
    EXPECT_EQ(f->write(write_of(std::vector<char>(kBytes, 'a'), mine, CallKind::write_at)).bytes,
              kBytes);
    EXPECT_TRUE(comm.barrier());
    OpenInfo again = write_only(path_.path());
    again.beside = {f.get()};
    auto g = File::open(comm::borrow(comm), again);
    EXPECT_EQ(path_.contents(), std::vector<std::byte>(2 * kBytes, std::byte{'a'}));
    EXPECT_TRUE(comm.barrier());
    for (File* const handle : {f.get(), g.get()}) {
      const char value = handle == f.get() ? 'b' : 'c';
      const std::vector<char> data(7, value);
      EXPECT_EQ(handle->write(write_of(data, mine, CallKind::write_at)).bytes, 7);
      EXPECT_EQ(path_.contents()[size_t(mine)], std::byte(value));
    }
    EXPECT_FALSE(f->snapshot().degraded.empty());
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
    EXPECT_EQ(g->close(report), ErrorClass::none);
  });
}

TEST_F(FileBehind, NothingIsDeferredThatCouldBeRead) {
  OpenInfo info = write_only(path_.path());
  info.readable = true;
  expect_in_file_after(info, kBytes, [](File&) {});
}

TEST_F(FileBehind, RelaxedVisibilityDefersWhatCouldBeRead) {
  OpenInfo info = write_only(path_.path());
  info.readable = true;
  info.config.visibility = Visibility::relaxed;
  expect_in_file_after(info, 0, [](File& f) { (void)f.flush(Drain::mine); });
}

TEST_F(FileBehind, NothingIsDeferredWhereItIsOff) {
  OpenInfo info = write_only(path_.path());
  info.config.write_behind = WriteBehind::off;
  expect_in_file_after(info, kBytes, [](File&) {});
}

TEST_F(FileBehind, NothingIsDeferredWhereEveryCallIsToReturnWithItsBytesInTheFile) {
  OpenInfo info = write_only(path_.path());
  info.config.method.staged_bytes = 0;
  expect_in_file_after(info, kBytes, [](File&) {});
}

TEST_F(FileBehind, WhatIsStagedKeepsItsPlaceAmongThem) {
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    auto f = File::open(comm::borrow(comm), write_only(path_.path()));
    EXPECT_EQ(f->write(write_of(std::vector<char>(kBytes, 'a'), 0, CallKind::write_at)).bytes,
              kBytes);
    EXPECT_EQ(f->stage(write_of(std::vector<char>(100, 'b'), 0, CallKind::write_at)).bytes, 100);
    EXPECT_EQ(f->flush(Drain::mine), ErrorClass::none);
    EXPECT_EQ(path_.contents().front(), std::byte{'b'});
    EXPECT_EQ(f->snapshot().sum.engine_bytes, kBytes + 100) << "with those that were replaced";
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
  });
}

// --- The short way ---

std::vector<std::byte> piece_of(int64_t n, char value) {
  return std::vector<std::byte>(size_t(n), std::byte(value));
}

TEST_F(FileBehind, APieceIsAcceptedOnceAWriteWas) {
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    auto f = File::open(comm::borrow(comm), write_only(path_.path()));
    const auto piece = piece_of(7, 'p');
    EXPECT_FALSE(f->write_piece({CallKind::write_at, 0, piece}));
    EXPECT_EQ(f->write(write_of({'a', 'b'}, 0, CallKind::write_at)).bytes, 2);
    EXPECT_TRUE(f->write_piece({CallKind::write_at, 2, piece}));
    EXPECT_EQ(path_.contents().size(), 0u);
    EXPECT_EQ(f->sync(), ErrorClass::none);
    EXPECT_EQ(path_.contents().size(), 9u);
    EXPECT_EQ(path_.contents().back(), std::byte{'p'});
    EXPECT_FALSE(f->write_piece({CallKind::write_at, 2, piece})) << "the page has left";
  });
}

TEST_F(FileBehind, APieceGoesThroughTheViewOfNow) {
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    auto f = File::open(comm::borrow(comm), write_only(path_.path()));
    EXPECT_EQ(f->write(write_of({'a'}, 0, CallKind::write_at)).bytes, 1);
    const auto pairs = *layout::LoopTree::resized(layout::LoopTree::bytes(2), 0, 10);
    f->set_view(*layout::FileView::make(100, 1, pairs), "");
    EXPECT_FALSE(f->write_piece({CallKind::write_at, 2, piece_of(4, 'p')})) << "of before";
    EXPECT_EQ(f->write(write_of({'b', 'b'}, 0, CallKind::write_at)).bytes, 2);
    EXPECT_TRUE(f->write_piece({CallKind::write_at, 2, piece_of(4, 'p')}));
    EXPECT_FALSE(f->write_piece({CallKind::write_at, 7, piece_of(4, 'p')})) << "no one run";
    EXPECT_EQ(f->sync(), ErrorClass::none);
    const auto file = path_.contents();
    ASSERT_EQ(file.size(), 122u);
    for (const size_t at : {110, 111, 120, 121}) EXPECT_EQ(file[at], std::byte{'p'}) << at;
    EXPECT_EQ(file[112], std::byte{0});
    EXPECT_EQ(f->snapshot().sum.strided_calls, 1);
  });
}

TEST_F(FileBehind, APieceIsInTheFileWhereNothingIsDeferredAnyMore) {
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    auto f = File::open(comm::borrow(comm), write_only(path_.path()));
    EXPECT_EQ(f->write(write_of({'a'}, 0, CallKind::write_at)).bytes, 1);
    OpenInfo unshared = write_only(path_.path());
    unshared.beside = {f.get()};
    unshared.config.write_behind = WriteBehind::off;
    auto g = File::open(comm::borrow(comm), unshared);
    const auto piece = piece_of(7, 'p');
    EXPECT_FALSE(f->write_piece({CallKind::write_at, 1, piece, true})) << "who waits for a file?";
    EXPECT_TRUE(f->write_piece({CallKind::write_at, 1, piece}));
    EXPECT_EQ(path_.contents().size(), 8u);
    FileReport report;
    EXPECT_EQ(g->close(report), ErrorClass::none);
    EXPECT_EQ(f->close(report), ErrorClass::none);
  });
}

// What fifty writes count, as pieces but for the first, or all by write().
Counters count_writes(const OpenInfo& info, bool shortly) {
  constexpr int64_t kCalls = 50;
  Counters sum;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    auto f = File::open(comm::borrow(comm), info);
    const std::vector<char> data(30, 'w');
    const auto piece = piece_of(30, 'w');
    for (int64_t at = 0; at < kCalls * 30; at += 30) {
      const bool taken = shortly && f->write_piece({CallKind::write_at, at, piece});
      EXPECT_EQ(taken, shortly && at > 0);
      if (!taken) EXPECT_EQ(f->write(write_of(data, at, CallKind::write_at)).bytes, 30);
    }
    const FileReport open = f->snapshot();
    EXPECT_GT(open.sum.call_ns, 0);
    EXPECT_EQ(open.algorithms.at("individual"), kCalls);
    EXPECT_EQ(f->sync(), ErrorClass::none);
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::none);
    EXPECT_GT(report.actual_rate, 0) << "from the first write to the sync";
    sum = report.sum;
  });
  return sum;
}

// By either way the same is counted, deferred or not.
TEST_F(FileBehind, PiecesAreCountedAsWritesAre) {
  for (const bool readable : {false, true}) {
    SCOPED_TRACE(readable ? "not deferred" : "deferred");
    OpenInfo info = write_only(path_.path());
    info.readable = readable;
    const Counters shortly = count_writes(info, true), otherwise = count_writes(info, false);
    EXPECT_EQ(shortly.calls, otherwise.calls);
    EXPECT_EQ(shortly.sizes, otherwise.sizes);
    EXPECT_EQ(shortly.contiguous_calls, otherwise.contiguous_calls);
    EXPECT_EQ(shortly.staged_bytes, otherwise.staged_bytes);
    EXPECT_EQ(shortly.engine_bytes, otherwise.engine_bytes);
    EXPECT_EQ(shortly.shared_bytes, otherwise.shared_bytes);
    EXPECT_EQ(shortly.file_writes, otherwise.file_writes);
  }
}

// Where nothing is deferred the call itself says what is not in the file: of two blocks the first.
TEST_F(FileBehind, APieceThatFailsSaysWhatIsInTheFile) {
  faults.nth_write = 3;
  faults.write_errno = ENOSPC;
  OpenInfo info = write_only(path_.path());
  info.readable = true;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    auto f = File::open(comm::borrow(comm), info);
    const auto pairs = *layout::LoopTree::resized(layout::LoopTree::bytes(2), 0, 10);
    f->set_view(*layout::FileView::make(0, 1, pairs), "");
    EXPECT_EQ(f->write(write_of({'a', 'a'}, 0, CallKind::write_at)).bytes, 2);
    const auto result = f->write_piece({CallKind::write_at, 2, piece_of(4, 'p')});
    ASSERT_TRUE(result);
    EXPECT_EQ(result->agreed, ErrorClass::no_space);
    EXPECT_EQ(result->bytes, 2);
    ASSERT_TRUE(result->mine);
    const FileReport open = f->snapshot();
    EXPECT_EQ(open.sum.engine_bytes, 4);
    EXPECT_EQ(open.sum.errors, 1);
    EXPECT_EQ(open.sum.file_writes, 3);
  });
  EXPECT_EQ(path_.contents().size(), 12u);
}

// A page that pieces fill leaves, and is lost; the next call that has words for it tells that.
TEST_F(FileBehind, NoPieceIsAcceptedBeforeALossIsTold) {
  faults.nth_write = 1;
  faults.write_errno = ENOSPC;
  OpenInfo info = write_only(path_.path());
  info.config.write_behind_page_bytes = 4096;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    auto f = File::open(comm::borrow(comm), info);
    EXPECT_EQ(f->write(write_of({'a'}, 0, CallKind::write_at)).bytes, 1);
    EXPECT_TRUE(f->write_piece({CallKind::write_at, 1, piece_of(4095, 'p')}));
    const auto lost = [&] { return f->snapshot().degraded.size() > 0; };
    ASSERT_TRUE(io::eventually(lost));
    EXPECT_FALSE(f->write_piece({CallKind::write_at, 0, piece_of(7, 'p')}));
    EXPECT_EQ(f->write(write_of({'b'}, 5000, CallKind::write_at)).agreed, ErrorClass::no_space);
    EXPECT_TRUE(f->write_piece({CallKind::write_at, 5001, piece_of(7, 'p')})) << "told";
    EXPECT_EQ(f->sync(), ErrorClass::no_space);
    EXPECT_EQ(f->snapshot().sum.errors, 2) << "a write and a sync";
  });
}

TEST_F(FileBehind, PagesThatAreMoreThanTheBoundAreTold) {
  for (const int64_t limit : {int64_t{1} << 20, int64_t{4} << 20}) {
    OpenInfo info = write_only(path_.path());
    info.config.write_behind_page_bytes = int64_t{1} << 20;
    info.config.write_behind_limit_bytes = limit;
    comm::run_thread_team(1, [&](comm::Comm& comm) {
      auto f = File::open(comm::borrow(comm), info);
      FileReport report;
      EXPECT_EQ(f->close(report), ErrorClass::none);
      EXPECT_EQ(report.degraded.contains("write-behind: pages of 1MiB, of which a node has 4, are "
                                         "more than write_behind_limit"),
                limit < 4 << 20);
    });
  }
}

// Ranks that turn one page into one write; the loss is every rank's to hear.
TEST_F(FileBehind, WhatWasLostIsToldBySyncAndByCloseToAll) {
  faults.nth_write = 1;
  faults.write_errno = ENOSPC;
  comm::run_thread_team(3, [&](comm::Comm& comm) {
    auto f = File::open(comm::borrow(comm), write_only(path_.path()));
    const std::vector<char> data(100, 'a');
    if (comm.rank() == 1)
      EXPECT_EQ(f->write(write_of(data, 300, CallKind::write_at)).agreed, ErrorClass::none);
    EXPECT_TRUE(comm.barrier());
    std::optional<Error> mine;
    EXPECT_EQ(f->sync(&mine), ErrorClass::no_space);
    ASSERT_TRUE(mine);
    EXPECT_NE(mine->detail.find("100 bytes"), mine->detail.npos) << mine->detail;
    EXPECT_NE(mine->detail.find("[300, 400)"), mine->detail.npos) << mine->detail;
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::no_space);
    if (comm.rank() == 0) EXPECT_EQ(report.sum.errors, 2 * 3) << "two calls of each rank";
  });
}

// Rank 0 looks before there is anything to be seen, and hears of it with the others.
TEST_F(FileBehind, WhatACollectiveWriteToldAllIsNotToldAgainByWhatFollows) {
  faults.nth_write = 1;
  faults.write_errno = ENOSPC;
  comm::run_thread_team(3, [&](comm::Comm& comm) {
    auto f = File::open(comm::borrow(comm), write_only(path_.path()));
    const std::vector<char> data(100, 'a');
    if (comm.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      EXPECT_EQ(f->write(write_of(data, 300, CallKind::write_at)).agreed, ErrorClass::none);
    }
    const int64_t at = 100'000 + 100 * comm.rank();
    EXPECT_EQ(f->write_all(write_of(data, at, CallKind::write_at_all)).agreed,
              ErrorClass::no_space);
    EXPECT_EQ(f->write(write_of(data, at, CallKind::write_at)).agreed, ErrorClass::none);
    EXPECT_EQ(f->sync(), ErrorClass::no_space);
    FileReport report;
    EXPECT_EQ(f->close(report), ErrorClass::no_space);
  });
}

// --- Several nodes ---

class FileBehindOnTwoNodes : public FileBehind, public testing::WithParamInterface<exec::Progress> {
 protected:
  static constexpr int64_t kPage = 4096;

  OpenInfo two_nodes() const {
    OpenInfo info = write_only(path_.path());
    info.config.write_behind_page_bytes = kPage;
    info.config.write_behind_progress = GetParam();
    return info;
  }
  template <class Body>
  void on_four_ranks(Body&& body) {
    const OpenInfo info = two_nodes();
    comm::run_thread_team(4,
                          [&](comm::Comm& comm) {
                            const auto f = File::open(comm::borrow(comm), info);
                            body(*f, comm);
                          },
                          {.nodes = 2});
  }
};

TEST_P(FileBehindOnTwoNodes, ASyncBringsAllBytesIntoTheFileAndTheReportSaysHowTheyMoved) {
  on_four_ranks([&](File& f, comm::Comm& comm) {
    const std::vector<char> data(100, 'a');
    for (int64_t i = comm.rank(); i < 400; i += 4)
      EXPECT_EQ(f.write(write_of(data, i * 100, CallKind::write_at)).bytes, 100);
    EXPECT_EQ(f.sync(), ErrorClass::none);
    EXPECT_TRUE(path_.contents() == std::vector<std::byte>(40'000, std::byte{'a'}));
    FileReport report;
    EXPECT_EQ(f.close(report), ErrorClass::none);
    if (comm.rank() != 0) return;
    EXPECT_EQ(report.progress, to_string(GetParam()));
    EXPECT_EQ(report.sum.engine_bytes, 40'000);
    EXPECT_GT(report.sum.messages, 0);
    EXPECT_TRUE(report.degraded.empty());
  });
}

// The owner of the page would be late with what came before.
TEST_P(FileBehindOnTwoNodes, ACollectiveWriteComesBehindWhatTheSameRankWroteAlone) {
  on_four_ranks([&](File& f, comm::Comm& comm) {
    for (int round = 0; round < 20; ++round) {
      const Off mine = ((comm.rank() + 2) % 4) * kPage;  // of the other node's pages
      EXPECT_EQ(f.write(write_of(std::vector<char>(100, 'a'), mine, CallKind::write_at)).bytes,
                100);
      const std::vector<char> later(50, char('b' + round % 20));
      EXPECT_EQ(f.write_all(write_of(later, mine, CallKind::write_at_all)).agreed,
                ErrorClass::none);
      EXPECT_EQ(f.flush(Drain::all), ErrorClass::none);
      const std::vector<std::byte> file = path_.contents();
      EXPECT_EQ(file[size_t(mine)], std::byte(later[0])) << round;
      EXPECT_EQ(file[size_t(mine) + 50], std::byte{'a'});
      EXPECT_TRUE(comm.barrier());
    }
    FileReport report;
    EXPECT_EQ(f.close(report), ErrorClass::none);
  });
}

TEST_P(FileBehindOnTwoNodes, WhatAnOwnerLostIsToldToAllWithItsPlace) {
  faults.nth_write = 1;
  faults.write_errno = ENOSPC;
  on_four_ranks([&](File& f, comm::Comm& comm) {
    const std::vector<char> data(100, 'a');
    if (comm.rank() == 0)
      EXPECT_EQ(f.write(write_of(data, 3 * kPage + 5, CallKind::write_at)).agreed,
                ErrorClass::none);
    std::optional<Error> mine;
    EXPECT_EQ(f.sync(&mine), ErrorClass::no_space);
    ASSERT_TRUE(mine);
    EXPECT_NE(mine->detail.find("[12293, 12393)"), mine->detail.npos) << mine->detail;
    FileReport report;
    EXPECT_EQ(f.close(report), ErrorClass::no_space);
    if (comm.rank() == 0) EXPECT_EQ(report.sum.errors, 2 * 4);
  });
}

TEST_P(FileBehindOnTwoNodes, AtTheEndOfMpiNobodyIsAsked) {
  on_four_ranks([&](File& f, comm::Comm& comm) {
    const std::vector<char> data(100, 'a');
    for (int64_t i = comm.rank(); i < 400; i += 4)
      EXPECT_EQ(f.write(write_of(data, i * 100, CallKind::write_at)).bytes, 100);
    EXPECT_EQ(f.flush(Drain::last), ErrorClass::none);
    EXPECT_TRUE(comm.barrier());
    EXPECT_TRUE(path_.contents() == std::vector<std::byte>(40'000, std::byte{'a'}));
  });
}

TEST_P(FileBehindOnTwoNodes, NothingStaysBehindForLong) {
  OpenInfo info = two_nodes();
  info.config.write_behind_seconds = 1;
  comm::run_thread_team(
      2,
      [&](comm::Comm& comm) {
        auto f = File::open(comm::borrow(comm), info);
        const std::vector<char> data(100, 'a');
        if (comm.rank() == 0) {
          EXPECT_EQ(f->write(write_of(data, kPage, CallKind::write_at)).bytes, 100);
          EXPECT_TRUE(
              io::eventually([&] { return path_.contents().size() == size_t(kPage + 100); }));
        }
        EXPECT_TRUE(comm.barrier());
        FileReport report;
        EXPECT_EQ(f->close(report), ErrorClass::none);
      },
      {.nodes = 2});
}

INSTANTIATE_TEST_SUITE_P(Every, FileBehindOnTwoNodes, testing::ValuesIn(exec::kProgresses),
                         [](const auto& tested) { return to_string(tested.param); });

}  // namespace
}  // namespace penstock::engine::file_behind_test
