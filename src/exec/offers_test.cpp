// Full pages where the ranks write them themselves: who takes a new page, being ahead, writes one
// that others have filled, and who fills pages goes on.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "comm/thread_comm.hpp"
#include "exec/behind_for_tests.hpp"
#include "io/held_file.hpp"
#include "io/temporary_file.hpp"

namespace penstock::exec::offers_test {
namespace {

constexpr int64_t kPage = 4096, kHalf = kPage / 2;
constexpr WriteBehindShape kByRanks{kPage, 0, FullPage::by_ranks};
constexpr int kOffers = PagePool::kMostOffered;

std::unique_ptr<io::MechanismFile> open(const io::TemporaryFile& path) {
  return io::find_mechanism("pwrite")->open({.path = path.path()}).value();
}

// Without a thread: what a call does is done when it returns.
class Rank final : public BehindRank {
 public:
  Rank(comm::Comm& comm, std::unique_ptr<io::MechanismFile> file)
      : BehindRank(comm, std::move(file), kByRanks, Thread::none) {}
  Rank(comm::Comm& comm, const io::TemporaryFile& path) : Rank(comm, open(path)) {}
  // This rank's halves of pages.
  void write_halves(comm::Comm& comm, int64_t begin, int64_t end) {
    for (int64_t page = begin; page < end; ++page)
      write_at(page * kPage + comm.rank() * kHalf, kHalf);
  }
  int64_t writes() const { return notes().spent.traffic.writes; }
};

TEST(Offers, WhoTakesANewPageWritesAFullOneAndWhoFillsPagesIsSpared) {
  constexpr int kFilled = kOffers + 4;
  const io::TemporaryFile path;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    Rank rank(comm, path);
    if (comm.rank() == 0) rank.write_halves(comm, 0, kFilled);
    EXPECT_TRUE(comm.barrier());
    if (comm.rank() == 1) {
      rank.write_halves(comm, 0, kFilled);
      EXPECT_EQ(rank.writes(), kFilled - kOffers);  // more than may be offered
    }
    EXPECT_TRUE(comm.barrier());
    if (comm.rank() == 0) {
      EXPECT_EQ(rank.writes(), 0);
      rank.write_halves(comm, kFilled, kFilled + 3);
      EXPECT_EQ(rank.writes(), 3);  // one for each
      rank.write_halves(comm, kFilled + 3, kFilled + kOffers + 2);
      EXPECT_EQ(rank.writes(), kOffers);  // and no more when all have left
    }
    EXPECT_TRUE(comm.barrier());
    if (comm.rank() == 1) rank.write_halves(comm, kFilled, kFilled + kOffers + 2);
    EXPECT_TRUE(comm.barrier());
    rank.flush();
    EXPECT_TRUE(comm.barrier());
  });
  EXPECT_TRUE(path.holds(bytes_at(0, (kFilled + kOffers + 2) * kPage)));
}

TEST(Offers, AFlushWritesThem) {
  const io::TemporaryFile path;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    Rank rank(comm, path);
    rank.write_halves(comm, 0, 3);
    EXPECT_TRUE(comm.barrier());
    rank.flush();
    EXPECT_TRUE(comm.barrier());
    EXPECT_TRUE(path.holds(bytes_at(0, 3 * kPage)));
    rank.write_halves(comm, 3, 6);  // past what is offered and has left
    EXPECT_TRUE(comm.barrier());
    rank.flush();
  });
  EXPECT_TRUE(path.holds(bytes_at(0, 6 * kPage)));
}

// The device stands still in the middle of rank 0's turn: rank 1 takes new pages, and is held up
// only by what comes when the turn has lasted too long. (Its first part decides nothing where the
// machine itself stood still for so long.)
TEST(Offers, WhileOneRankWritesTheNextWhoIsAheadGoesOn) {
  constexpr int kFilled = 4;
  constexpr double kShort_s = 0.015;
  constexpr auto kLong = std::chrono::milliseconds(40);
  const io::TemporaryFile path;
  io::Hold hold;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    auto file = open(path);
    if (comm.rank() == 0) file = std::make_unique<io::HeldFile>(std::move(file), hold);
    Rank rank(comm, std::move(file));
    if (comm.rank() == 0) rank.write_halves(comm, 0, kFilled);
    EXPECT_TRUE(comm.barrier());
    if (comm.rank() == 1) rank.write_halves(comm, 0, kFilled);
    const double begin_s = now_s();
    EXPECT_TRUE(comm.barrier());
    if (comm.rank() == 0) rank.write_halves(comm, kFilled, kFilled + 1);
    if (comm.rank() == 1) {
      hold.wait_until_someone_waits();
      rank.write_halves(comm, kFilled, kFilled + 2);
      if (now_s() - begin_s < kShort_s) EXPECT_EQ(rank.writes(), 0);
      const int64_t before = rank.writes();
      std::this_thread::sleep_for(kLong);
      rank.write_halves(comm, kFilled + 2, kFilled + 3);
      EXPECT_EQ(rank.writes(), before + 1);
      hold.open();
    }
    if (comm.rank() == 0) rank.write_halves(comm, kFilled + 1, kFilled + 3);
    EXPECT_TRUE(comm.barrier());
    rank.flush();
    EXPECT_TRUE(comm.barrier());
  });
  EXPECT_TRUE(path.holds(bytes_at(0, (kFilled + 3) * kPage)));
}

// A program that stops writing, and computes: nobody takes a new page.
TEST(Offers, WhatNobodyTakesIsWrittenByTheThread) {
  const io::TemporaryFile path;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    Rank rank(comm, path);
    rank.write_halves(comm, 0, 3);
    EXPECT_TRUE(comm.barrier());
    if (comm.rank() == 0) rank.run(Chore::Why::due);
    EXPECT_TRUE(comm.barrier());
    EXPECT_TRUE(path.holds(bytes_at(0, 3 * kPage)));
    rank.flush();
  });
}

// With one rank there is nobody who would be ahead.
TEST(Offers, ARankAloneWritesWhatItFills) {
  const io::TemporaryFile path;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    Rank rank(comm, path);
    rank.write_at(0, kHalf);
    rank.write_at(kHalf, kHalf);
    EXPECT_EQ(rank.writes(), 1);
    EXPECT_TRUE(path.holds(bytes_at(0, kPage)));
  });
}

// The device stands still, and the call returns: by a whole page at a time, which a blocking write
// would not copy, and by pieces of one; alone, and where another rank has pages on offer.
TEST(Offers, ANonBlockingWriteLeavesPagesToTheThread) {
  constexpr int kPages = 4;
  for (const int ranks : {1, 2}) {
    const io::TemporaryFile path;
    io::Hold hold;
    comm::run_thread_team(ranks, [&](comm::Comm& comm) {
      BehindRank rank(comm, std::make_unique<io::HeldFile>(open(path), hold), kByRanks,
                      Thread::runs);
      const auto write_at_once = [&](Off offset, int64_t n) {
        EXPECT_EQ(rank.write(bytes_at(offset, n), offset, Returns::at_once).prefix_bytes, n);
      };
      const Off mine = comm.rank() * 2 * kPages * kPage;
      write_at_once(mine, kPages * kPage);
      for (Off at = mine + kPages * kPage; at < mine + 2 * kPages * kPage; at += kHalf)
        write_at_once(at, kHalf);
      EXPECT_EQ(hold.passed(), 0) << ranks;
      EXPECT_TRUE(comm.barrier());
      hold.open();
      rank.flush();
      EXPECT_TRUE(comm.barrier());
    });
    EXPECT_TRUE(path.holds(bytes_at(0, ranks * 2 * kPages * kPage)));
  }
}

// No thread runs, and no other rank writes: the call neither waits for them nor writes what they
// have filled.
TEST(Offers, ANonBlockingWriteTakesANewPageWhileOthersAreOffered) {
  constexpr int kFilled = 4;
  const io::TemporaryFile path;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    Rank rank(comm, path);
    rank.write_halves(comm, 0, kFilled);
    EXPECT_TRUE(comm.barrier());
    if (comm.rank() == 0) {
      const int64_t before = rank.writes();
      const Off next = kFilled * kPage;
      EXPECT_EQ(rank.write(bytes_at(next, kHalf), next, Returns::at_once).prefix_bytes, kHalf);
      EXPECT_EQ(rank.writes(), before);
    }
    EXPECT_TRUE(comm.barrier());
    rank.flush();
  });
  EXPECT_TRUE(path.holds(bytes_at(0, kFilled * kPage + kHalf)));
}

// A page of the other node's rank stays here until a thread writes it, and what goes to its owner
// comes after it. The device stands still for as long as another way would need to go wrong.
TEST(Offers, WhatFollowsAWholePageOfANonBlockingWriteComesAfterIt) {
  constexpr Off kOthers = kPage;  // of rank 1
  const io::TemporaryFile path;
  io::Hold hold;
  comm::run_thread_team(2,
                        [&](comm::Comm& comm) {
                          auto file = open(path);
                          if (comm.rank() == 0)
                            file = std::make_unique<io::HeldFile>(std::move(file), hold);
                          BehindRank rank(comm, std::move(file), kByRanks, Thread::runs);
                          std::jthread opener;
                          if (comm.rank() == 0) {
                            const std::vector<std::byte> old(kPage, std::byte{1});
                            EXPECT_EQ(rank.write(old, kOthers, Returns::at_once).prefix_bytes,
                                      kPage);
                            opener = std::jthread([&] {
                              std::this_thread::sleep_for(std::chrono::milliseconds(100));
                              hold.open();
                            });
                            for (const Off at : {kOthers, kOthers + kHalf})
                              rank.write_at(at, kHalf);
                          }
                          rank.flush_together();
                          EXPECT_TRUE(comm.barrier());
                        },
                        {.nodes = 2});
  const std::vector<std::byte> file = path.contents();
  ASSERT_EQ(file.size(), size_t(2 * kPage));
  EXPECT_TRUE(std::ranges::equal(std::span(file).subspan(kPage), bytes_at(kOthers, kPage)));
}

}  // namespace
}  // namespace penstock::exec::offers_test
