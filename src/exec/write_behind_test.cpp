// Writes behind: what ranks accept on their own, in whatever order, is in the file after a flush;
// never more memory than asked for; neighbours' pieces leave as one; what is lost is told to all.
#include "exec/write_behind.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <thread>

#include "comm/thread_comm.hpp"
#include "exec/behind_for_tests.hpp"
#include "exec/write_behind_shape.hpp"
#include "io/faulty.hpp"
#include "io/temporary_file.hpp"

namespace penstock::exec::write_behind_test {
namespace {

constexpr int64_t kSmallPage = 4096;
constexpr int64_t kFourPages = 4 * kSmallPage;

std::unique_ptr<io::MechanismFile> open(const std::string& path, const io::FaultPlan& faults = {}) {
  return std::make_unique<io::FaultyFile>(
      io::find_mechanism("pwrite")->open({.path = path}).value(), faults);
}

// Without a thread, so that what a call does is done when it returns.
class Rank final : public BehindRank {
 public:
  Rank(comm::Comm& comm, const std::string& path, WriteBehindShape shape,
       const io::FaultPlan& faults = {})
      : BehindRank(comm, open(path, faults), shape, Thread::none) {}
};

WriteRequest request_of(const RankCase& c) {
  return {&c.view, c.range, c.memory.data(), c.memory_type, c.memory_count};
}

int seeds() {
  const char* const given = std::getenv("PENSTOCK_TEST_SEEDS");
  return given != nullptr ? std::atoi(given) : 12;
}

// --- The bytes ---

using Team = std::tuple<int, int, int64_t, Thread>;  // ranks, nodes, limit per rank
class TeamsBehind : public testing::TestWithParam<Team> {};

// Several calls a rank, one after the other, each on views and memory of its own.
TEST_P(TeamsBehind, WritesWhatEachRankAccepted) {
  const auto [ranks, nodes, limit, thread] = GetParam();
  for (int seed = 0; seed < seeds(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const io::TemporaryFile path;
    fill_with_background(path.path());
    Random random{uint64_t(seed)};
    std::vector<std::vector<RankCase>> calls;
    for (int call = 0; call < 4; ++call)
      calls.push_back(draw_writers(random, ranks, draw(random, 0, 1) == 0));
    const auto body = [&, limit = limit, thread = thread](comm::Comm& comm) {
      BehindRank rank(comm, open(path.path()), {kSmallPage, limit}, thread);
      for (const auto& call : calls) {
        const RankCase& mine = call[size_t(comm.rank())];
        const WriteOutcome outcome = rank.write(request_of(mine));
        EXPECT_EQ(outcome.prefix_bytes, mine.range.size());
        if (mine.range.size() % 3 == 0 || !kMayOverlap) rank.flush();
        if (!kMayOverlap) {
          EXPECT_TRUE(comm.barrier());  // nor may the calls of different ranks
        }
      }
      rank.flush();
      EXPECT_TRUE(comm.barrier());
      EXPECT_FALSE(rank.notes().failure);
    };
    comm::run_thread_team(ranks, body, {.nodes = nodes, .used_segments = seed % 2 == 0});
    std::vector<RankCase> all;
    for (const auto& call : calls) all.insert(all.end(), call.begin(), call.end());
    ASSERT_TRUE(path.holds(expectation(all)));
  }
}

constexpr Thread kRuns = Thread::runs, kNone = Thread::none;
INSTANTIATE_TEST_SUITE_P(Many, TeamsBehind,
                         testing::Values(Team{1, 1, 0, kNone}, Team{1, 1, 1, kNone},
                                         Team{1, 1, 1, kRuns}, Team{2, 1, 1, kRuns},
                                         Team{3, 1, 1, kNone}, Team{3, 1, 1, kRuns},
                                         Team{4, 1, 0, kRuns}, Team{4, 2, 1, kRuns},
                                         Team{7, 3, 1, kNone}, Team{7, 3, 1, kRuns},
                                         Team{16, 1, 1, kNone}, Team{16, 1, 1, kRuns}));

// Four stripes of 64 MiB would be more than may wait; of 16 MiB they are what may.
TEST(WriteBehind, APageIsPartOfAStripeThatTheBoundHasNoRoomFor) {
  constexpr int64_t kStripe = int64_t{64} << 20;
  for (const int ranks : {1, 2, 4, 8})
    comm::run_thread_team(ranks, [&](comm::Comm& comm) {
      for (const auto sharing : {layout::Sharing::any, layout::Sharing::unit_per_node}) {
        const layout::Geometry geometry{
            .block_bytes = kStripe, .stripe_bytes = kStripe, .sharing = sharing};
        const auto made = WriteBehind::make(comm, {}, geometry, {});
        ASSERT_TRUE(made);
        EXPECT_EQ((*made)->page_bytes(), std::min(kStripe, ranks * kWriteBehindLimitBytes / 4));
        EXPECT_LE((*made)->most_bytes(), ranks * kWriteBehindLimitBytes);
      }
    });
}

// What a log says of bounds that cut something compares with this.
TEST(WriteBehind, ANodesPagesMayBeWhatItsLimitSays) {
  for (const int nodes : {1, 2})
    comm::run_thread_team(
        4,
        [&](comm::Comm& comm) {
          constexpr int64_t kLimit = int64_t{8} << 20;
          const auto made = WriteBehind::make(comm, {0, kLimit}, {}, {});
          ASSERT_TRUE(made);
          EXPECT_EQ((*made)->most_bytes(), limit_of_node(comm, kLimit)) << nodes << " nodes";
          EXPECT_EQ(limit_of_node(comm, 0), limit_of_node(comm, kWriteBehindLimitBytes));
        },
        {.nodes = nodes});
}

// A rank's later bytes win over its earlier ones, also where whole pages go past the pool.
TEST(WriteBehind, ARanksLaterWriteWins) {
  const io::TemporaryFile path;
  std::map<Off, std::byte> last;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    Rank rank(comm, path.path(), {kSmallPage, kFourPages});
    Random random{7};
    for (int call = 0; call < 500; ++call) {
      const Off begin = draw(random, 0, 60'000);
      const std::vector<std::byte> bytes(size_t(draw(random, 1, 12'000)),
                                         std::byte(call % 255 + 1));
      EXPECT_EQ(rank.write(bytes, begin).prefix_bytes, int64_t(bytes.size()));
      for (size_t i = 0; i < bytes.size(); ++i) last[begin + Off(i)] = bytes[i];
    }
    rank.flush();
  });
  const std::vector<std::byte> file = path.contents();
  for (const auto& [at, value] : last) ASSERT_EQ(file[size_t(at)], value) << at;
}

// Past what any file system takes: an error, and an end.
TEST(WriteBehind, TheLastOffsetsHaveAPageToo) {
  const io::TemporaryFile path;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    Rank rank(comm, path.path(), {kSmallPage, 0});
    const Off last = std::numeric_limits<Off>::max() - 10;
    EXPECT_EQ(rank.write(bytes_at(0, 10), last).prefix_bytes, 10);
    rank.flush();
    const StagedNotes notes = rank.notes();
    EXPECT_EQ(notes.lost_bytes, 10);
    EXPECT_EQ(notes.lost, (std::vector{Extent{last, last + 10}}));
  });
}

TEST(WriteBehind, BytesBeyondTheLastOffsetAreNotAccepted) {
  const io::TemporaryFile path;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    Rank rank(comm, path.path(), {kSmallPage, 0});
    const Off far = Off{1} << 62;
    const layout::FileView view =
        layout::FileView::make(
            100, 1, layout::LoopTree::resized(layout::LoopTree::bytes(4), 0, far).value())
            .value();
    const std::vector<std::byte> memory = bytes_at(0, 16);
    const WriteOutcome outcome =
        rank.write({&view, {0, 16}, memory.data(), layout::LoopTree::bytes(1), 16});
    EXPECT_EQ(outcome.prefix_bytes, 8);  // the third block would begin at 2^63 + 100
    ASSERT_TRUE(outcome.mine);
    EXPECT_EQ(outcome.agreed, ErrorClass::io);
  });
}

TEST(WriteBehind, WholePagesBeyondTheLastOffsetAreNotAccepted) {
  const io::TemporaryFile path;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    Rank rank(comm, path.path(), {kSmallPage, 0});
    const Off begin = kLastOff - (kLastOff % kSmallPage) - kSmallPage;
    const layout::FileView view =
        layout::FileView::make(begin, 1, layout::LoopTree::bytes(1)).value();
    const std::vector<std::byte> memory = bytes_at(0, 4 * kSmallPage);
    const WriteOutcome outcome = rank.write(
        {&view, {0, 4 * kSmallPage}, memory.data(), layout::LoopTree::bytes(1), 4 * kSmallPage});
    ASSERT_TRUE(outcome.mine);  // by the file system, or where the last offset is
    EXPECT_TRUE(outcome.agreed == ErrorClass::io || outcome.agreed == ErrorClass::file_too_large);
    EXPECT_LT(outcome.prefix_bytes, 2 * kSmallPage);
  });
}

// --- The counts ---

// `ranks` take turns block by block; each writes its own in calls of one block.
struct Turns {
  int ranks;
  int64_t block, blocks;
};
Spent write_in_turns(const Turns& t, WriteBehindShape shape, const std::string& path,
                     bool together) {
  Spent sum;
  std::mutex mutex;
  comm::run_thread_team(t.ranks, [&](comm::Comm& comm) {
    Rank rank(comm, path, shape);
    for (int64_t i = 0; i < t.blocks; ++i) {
      const Off at = (i * t.ranks + comm.rank()) * t.block;
      EXPECT_FALSE(rank.write(bytes_at(at, t.block), at).mine);
      if (together) EXPECT_TRUE(comm.barrier());
    }
    EXPECT_TRUE(comm.barrier());
    rank.flush();
    EXPECT_TRUE(comm.barrier());
    const std::lock_guard lock(mutex);
    sum = sum + rank.notes().spent;
  });
  return sum;
}

class RanksBehind : public testing::TestWithParam<int> {};

TEST_P(RanksBehind, NeighboursPiecesLeaveAsWholePages) {
  const Turns t{GetParam(), 64, 256};
  const io::TemporaryFile path;
  const Spent spent = write_in_turns(t, {kSmallPage, 0}, path.path(), false);
  const int64_t all = t.ranks * t.block * t.blocks;
  EXPECT_EQ(spent.traffic.writes, all / kSmallPage);
  EXPECT_EQ(spent.traffic.shared_bytes, all) << "each byte is copied once";
  EXPECT_TRUE(path.holds(bytes_at(0, all)));
}

// Four pages for everybody: what is full leaves at once, so nothing is torn while all keep step.
TEST_P(RanksBehind, FewPagesAreEnoughForRanksThatKeepStep) {
  const Turns t{GetParam(), 64, 256};
  const io::TemporaryFile path;
  const Spent spent = write_in_turns(t, {kSmallPage, 1}, path.path(), true);
  EXPECT_EQ(spent.traffic.writes, t.ranks * t.block * t.blocks / kSmallPage);
}

INSTANTIATE_TEST_SUITE_P(Many, RanksBehind, testing::Values(1, 2, 4, 8, 16));

TEST(WriteBehind, WholePagesAreNotCopied) {
  const io::TemporaryFile path;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    Rank rank(comm, path.path(), {kSmallPage, 0});
    EXPECT_FALSE(rank.write(bytes_at(100, 10 * kSmallPage), 100).mine);
    const Spent spent = rank.notes().spent;
    EXPECT_EQ(spent.traffic.writes, 1) << "the nine whole pages";
    EXPECT_EQ(spent.traffic.shared_bytes, kSmallPage) << "what is before and behind them";
    rank.flush();
  });
  std::vector<std::byte> file = path.contents();
  file.erase(file.begin(), file.begin() + 100);
  EXPECT_TRUE(file == bytes_at(100, 10 * kSmallPage));
}

TEST(WriteBehind, ThePageThatWasNotUsedForLongestMakesRoom) {
  const io::TemporaryFile path;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    Rank rank(comm, path.path(), {kSmallPage, kFourPages});
    for (const int64_t page : {0, 1, 2, 3, 0, 4})  // 1 goes
      EXPECT_FALSE(rank.write(bytes_at(page * kSmallPage + 9, 10), page * kSmallPage + 9).mine);
    EXPECT_EQ(path.contents().size(), size_t(kSmallPage + 19));
    EXPECT_EQ(path.contents()[9], std::byte{0});
    rank.flush();
    EXPECT_EQ(path.contents()[9], value_at(9));
  });
}

// --- The short way ---

TEST(WriteBehind, TheShortWayIsIntoThePageThatWasFilledLast) {
  const io::TemporaryFile path;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    Rank rank(comm, path.path(), {kSmallPage, 0});
    EXPECT_FALSE(rank.add(bytes_at(0, 10), 0)) << "none was";
    rank.write_at(kSmallPage + 100, 10);
    EXPECT_FALSE(rank.add(bytes_at(0, 10), 0)) << "another page";
    EXPECT_FALSE(rank.add(bytes_at(2 * kSmallPage - 5, 10), 2 * kSmallPage - 5)) << "two pages";
    EXPECT_TRUE(rank.add(bytes_at(kSmallPage, 40), kSmallPage));
    EXPECT_TRUE(rank.add(bytes_at(2 * kSmallPage - 10, 10), 2 * kSmallPage - 10));
    EXPECT_EQ(rank.notes().accepted_bytes, 60);
    EXPECT_EQ(rank.notes().spent.traffic.shared_bytes, 60);
    rank.flush();
    EXPECT_FALSE(rank.add(bytes_at(kSmallPage, 40), kSmallPage)) << "it has left";
    EXPECT_EQ(rank.notes().written_bytes, 60);
    EXPECT_EQ(rank.notes().spent.traffic.writes, 3) << "one for each place";
  });
  const std::vector<std::byte> file = path.contents();
  ASSERT_EQ(file.size(), size_t(2 * kSmallPage));
  for (const Extent e : {Extent{4096, 4136}, Extent{4196, 4206}, Extent{8182, 8192}})
    for (Off at = e.begin; at < e.end; ++at) ASSERT_EQ(file[size_t(at)], value_at(at)) << at;
  EXPECT_EQ(file[4150], std::byte{0});
}

TEST(WriteBehind, BytesThatTheShortWayWritesAgainAreCountedAgain) {
  const io::TemporaryFile path;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    Rank rank(comm, path.path(), {kSmallPage, 0});
    rank.write_at(0, 100);
    EXPECT_TRUE(rank.add(std::vector(60, std::byte{7}), 50));
    EXPECT_EQ(rank.notes().accepted_bytes, 160);
    EXPECT_EQ(rank.notes().written_bytes, 50) << "over others that were to be written anyway";
    rank.flush();
    EXPECT_EQ(rank.notes().written_bytes, 160);
    EXPECT_EQ(path.contents()[49], value_at(49));
    EXPECT_EQ(path.contents()[50], std::byte{7});
  });
}

// Ranks deal blocks to each other, and each writes pieces of any length, by either way; four pages
// are all they have, so that these come and go.
class ShortWays : public testing::TestWithParam<std::pair<int, Thread>> {};

TEST_P(ShortWays, GiveTheSameFile) {
  const auto [ranks, thread] = GetParam();
  constexpr int64_t kBlock = 24, kOfEach = 40'000;
  const io::TemporaryFile path;
  std::atomic<int> shortly = 0;
  comm::run_thread_team(ranks, [&, ranks = ranks, thread = thread](comm::Comm& comm) {
    BehindRank rank(comm, open(path.path()), {kSmallPage, 1}, thread);
    const auto tile =
        *layout::LoopTree::resized(layout::LoopTree::bytes(kBlock), 0, kBlock * ranks);
    const auto view = *layout::FileView::make(kBlock * comm.rank(), 1, tile);
    Random random{uint64_t(comm.rank() + 1)};
    layout::Cursor walk = view.cursor();
    for (int64_t at = 0; at < kOfEach;) {
      const int64_t n = std::min(kOfEach - at, draw(random, 0, 3) * kBlock + draw(random, 1, 30));
      std::vector<std::byte> bytes;
      for (int64_t i = at; i < at + n; ++i) bytes.push_back(value_at(view.offset_of(i)));
      walk.seek(at);
      const layout::Run run = walk.next(n);
      if (run.bytes() == n && rank.add(run, bytes))
        ++shortly;
      else
        EXPECT_EQ(rank.write({&view, {at, at + n}, bytes.data(), layout::LoopTree::bytes(1), n})
                      .prefix_bytes,
                  n);
      at += n;
    }
    EXPECT_EQ(rank.notes().accepted_bytes, kOfEach);
    EXPECT_TRUE(comm.barrier());
    rank.flush();
    EXPECT_FALSE(rank.notes().failure);
  });
  EXPECT_GT(shortly, 20 * ranks) << "or the test shows nothing";
  const std::vector<std::byte> file = path.contents();
  for (Off at = 0; at < kOfEach / kBlock * kBlock * ranks; ++at)
    ASSERT_EQ(file[size_t(at)], value_at(at)) << at;
}

INSTANTIATE_TEST_SUITE_P(Many, ShortWays,
                         testing::Values(std::pair{1, kNone}, std::pair{1, kRuns},
                                         std::pair{3, kNone}, std::pair{4, kRuns}));

// --- The losses ---

TEST(WriteBehind, WhatIsLostIsToldToEveryRankOfTheNodeWithItsPlace) {
  const io::TemporaryFile path;
  comm::run_thread_team(3, [&](comm::Comm& comm) {
    Rank rank(comm, path.path(), {kSmallPage, 0}, {.nth_write = 1, .write_errno = ENOSPC});
    if (comm.rank() == 1) EXPECT_FALSE(rank.write(bytes_at(5000, 100), 5000).mine);
    EXPECT_TRUE(comm.barrier());
    rank.flush();
    EXPECT_TRUE(comm.barrier());
    const StagedNotes notes = rank.notes();
    ASSERT_TRUE(notes.failure);
    EXPECT_EQ(notes.failure->error_class, ErrorClass::no_space);
    EXPECT_EQ(notes.lost_bytes, 100);
    EXPECT_EQ(notes.lost, (std::vector{Extent{5000, 5100}}));
  });
}

TEST(WriteBehind, AWriteThatFailsAtOnceIsTheCallersOwn) {
  const io::TemporaryFile path;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    Rank rank(comm, path.path(), {kSmallPage, 0}, {.nth_write = 1, .write_errno = EIO});
    const WriteOutcome failed = rank.write(bytes_at(0, 3 * kSmallPage), 0);
    EXPECT_EQ(failed.agreed, ErrorClass::io);
    EXPECT_EQ(failed.prefix_bytes, 0);
    EXPECT_FALSE(rank.notes().failure) << "told already";
  });
}

// Where a rank goes ahead and another completes what it leaves, few pages are enough.
// The pages in memory at most, of two ranks that write every page together.
int pages_of_two_together(int64_t pages) {
  constexpr int64_t kHalf = kSmallPage / 2;
  const io::TemporaryFile path;
  int in_memory = 0;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    Rank rank(comm, path.path(), {kSmallPage, 0});
    for (int64_t page = 0; page < pages; ++page)
      rank.write_at(page * kSmallPage + comm.rank() * kHalf, kHalf);
    EXPECT_TRUE(comm.barrier());
    if (comm.rank() == 0) in_memory = rank.pages_in_memory();
    rank.flush();
  });
  EXPECT_TRUE(path.holds(bytes_at(0, pages * kSmallPage)));
  return in_memory;
}

// Who is ahead waits for no more than a moment, so a busy machine may let one rank run to its end:
// then they go again.
TEST(WriteBehind, WhoIsAheadLetsOthersCompletePagesBeforeItTakesNewMemory) {
  constexpr int kPages = 400, kTries = 40;
  int fewest = kPages;
  for (int i = 0; i < kTries && fewest >= kPages / 4; ++i)
    fewest = std::min(fewest, pages_of_two_together(kPages));
  EXPECT_LT(fewest, kPages / 4);
}

// The writes of two ranks that write half of each page, where one ends before the other has begun.
int64_t writes_where_one_ends_first(int64_t pages) {
  constexpr int64_t kHalf = kSmallPage / 2;
  const io::TemporaryFile path;
  std::atomic<bool> first_ends = false;
  std::atomic<int64_t> writes = 0;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    Rank rank(comm, path.path(), {kSmallPage, 0});
    while (comm.rank() == 1 && !first_ends) std::this_thread::yield();
    if (comm.rank() == 1) std::this_thread::sleep_for(std::chrono::microseconds(50));
    for (int64_t page = 0; page < pages; ++page)
      rank.write_at(page * kSmallPage + comm.rank() * kHalf, kHalf);
    first_ends = true;
    if (comm.rank() == 0) rank.let_others_complete();
    rank.flush();
    EXPECT_TRUE(comm.barrier());
    writes += rank.notes().spent.traffic.writes;
  });
  EXPECT_TRUE(path.holds(bytes_at(0, pages * kSmallPage)));
  return writes;
}

// As above: a busy machine may keep the other rank from its core for longer than the first waits.
TEST(WriteBehind, WhoEndsFirstLetsOthersCompletePages) {
  constexpr int kPages = 3, kTries = 40;
  int64_t fewest = 2 * kPages;
  for (int i = 0; i < kTries && fewest > kPages; ++i)
    fewest = std::min(fewest, writes_where_one_ends_first(kPages));
  EXPECT_EQ(fewest, kPages);
}

}  // namespace
}  // namespace penstock::exec::write_behind_test
