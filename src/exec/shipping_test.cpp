// Independent writes of several nodes: what any rank accepted is in the file after all have met,
// loads move as they are said to, and what an owner loses is told to every rank.
#include "exec/shipping.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "base/clock.hpp"
#include "comm/borrow.hpp"
#include "comm/thread_comm.hpp"
#include "exec/shipping_for_tests.hpp"
#include "io/held_file.hpp"
#include "io/temporary_file.hpp"

namespace penstock::exec::shipping_test {
namespace {

WriteRequest request_of(const RankCase& c) {
  return {&c.view, c.range, c.memory.data(), c.memory_type, c.memory_count};
}

int seeds() {
  const char* const given = std::getenv("PENSTOCK_TEST_SEEDS");
  return given != nullptr ? std::atoi(given) : 8;
}

// Small pages and loads, which move as is asked.
WriteBehindShape moving(Progress progress, int64_t limit_bytes = kMany) {
  return {.page_bytes = kPage,
          .limit_bytes_per_rank = limit_bytes,
          .progress = progress,
          .load_bytes = kLoad};
}

// What each rank does with a file that the ranks of two nodes write.
using Body = std::function<void(comm::Comm&, Rank&)>;

void on_two_nodes(int ranks, const io::TemporaryFile& file, const WriteBehindShape& shape,
                  const Body& body, const io::FaultPlan& faults = {}) {
  comm::run_thread_team(ranks,
                        [&](comm::Comm& comm) {
                          Rank rank(comm, file.path(), shape, {}, faults);
                          body(comm, rank);
                        },
                        {.nodes = 2, .used_segments = true});
}

// --- The bytes ---

struct Team {
  int ranks, nodes;
  int64_t limit;  // per rank
  Progress progress;
  layout::Sharing sharing;
};
void PrintTo(const Team& t, std::ostream* out) {
  *out << t.ranks << " ranks, " << t.nodes << " nodes, limit " << t.limit << ", "
       << to_string(t.progress) << (t.sharing == layout::Sharing::any ? "" : ", owners alone");
}
class TeamsShip : public testing::TestWithParam<Team> {};

// Calls alone, flushes alone and meetings of all, on views and memory of each rank's own.
TEST_P(TeamsShip, WhatEachRankAcceptedIsInTheFileAfterAllHaveMet) {
  const Team t = GetParam();
  layout::Geometry geometry;
  geometry.sharing = t.sharing;
  for (int seed = 0; seed < seeds(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const io::TemporaryFile path;
    fill_with_background(path.path());
    Random random{uint64_t(seed)};
    std::vector<std::vector<RankCase>> calls;
    for (int call = 0; call < 5; ++call)
      calls.push_back(draw_writers(random, t.ranks, draw(random, 0, 1) == 0));
    comm::run_thread_team(t.ranks,
                          [&](comm::Comm& comm) {
                            Rank rank(comm, path.path(), moving(t.progress, t.limit), geometry);
                            for (size_t call = 0; call < calls.size(); ++call) {
                              const RankCase& mine = calls[call][size_t(comm.rank())];
                              const WriteOutcome outcome =
                                  rank.behind->write(rank.target, request_of(mine));
                              EXPECT_EQ(outcome.prefix_bytes, mine.range.size());
                              if (mine.range.size() % 3 == 0) rank.behind->flush(rank.target);
                              if (call == 2 || !kMayOverlap)
                                rank.behind->flush_together(rank.target);
                            }
                            rank.behind->flush_together(rank.target);
                            EXPECT_FALSE(rank.behind->notes().failure);
                            EXPECT_TRUE(comm.barrier());
                          },
                          {.nodes = t.nodes});
    std::vector<RankCase> all;
    for (const auto& call : calls) all.insert(all.end(), call.begin(), call.end());
    ASSERT_TRUE(path.holds(expectation(all)));
  }
}

constexpr auto kAny = layout::Sharing::any, kOwned = layout::Sharing::unit_per_node;
constexpr auto kCalls = Progress::calls, kThread = Progress::thread, kRma = Progress::rma;
INSTANTIATE_TEST_SUITE_P(
    Many, TeamsShip,
    testing::Values(Team{2, 2, 0, kCalls, kAny}, Team{3, 2, 1, kCalls, kAny},
                    Team{4, 2, 8192, kCalls, kAny}, Team{7, 3, 1, kCalls, kAny},
                    Team{5, 5, 0, kCalls, kAny}, Team{1, 1, 0, kThread, kAny},
                    Team{2, 2, 0, kThread, kAny}, Team{3, 3, 1, kThread, kAny},
                    Team{4, 2, 8192, kThread, kAny}, Team{7, 3, 1, kThread, kAny},
                    Team{4, 2, 0, kThread, kOwned}, Team{7, 3, 1, kThread, kOwned},
                    Team{1, 1, 0, kRma, kAny}, Team{2, 2, 0, kRma, kAny}, Team{3, 3, 1, kRma, kAny},
                    Team{4, 2, 8192, kRma, kAny}, Team{5, 5, 0, kRma, kAny},
                    Team{7, 3, 1, kRma, kAny}));

class Moves : public testing::TestWithParam<Progress> {};

// Of overlapping writes the last one stays, also where loads, whole pages and flushes alternate.
TEST_P(Moves, ARanksLaterWriteWins) {
  const io::TemporaryFile path;
  std::map<Off, std::byte> last;
  on_two_nodes(2, path, moving(GetParam(), 8 * kPage), [&](comm::Comm& comm, Rank& rank) {
    Random random{7};
    for (int call = 0; call < 600; ++call) {
      const Off begin = draw(random, 0, 60'000);
      const std::vector<std::byte> bytes(size_t(draw(random, 1, 12'000)),
                                         std::byte(call % 255 + 1));
      const bool alone = draw(random, 0, 40) == 0, together = draw(random, 0, 40) == 0;
      const Returns returns = draw(random, 0, 2) == 0 ? Returns::at_once : Returns::soon;
      if (comm.rank() == 0) {
        EXPECT_EQ(rank.write(bytes, begin, returns).prefix_bytes, int64_t(bytes.size()));
        for (size_t i = 0; i < bytes.size(); ++i) last[begin + Off(i)] = bytes[i];
        if (alone) rank.behind->flush(rank.target);
      }
      if (together) rank.behind->flush_together(rank.target);
    }
    rank.behind->flush_together(rank.target);
  });
  const std::vector<std::byte> file = path.contents();
  for (const auto& [at, value] : last) ASSERT_EQ(file[size_t(at)], value) << at;
}

// No call of the program is needed for it to leave, whichever node's rank owns it.
TEST_P(Moves, AWholePageOfANonBlockingWriteIsNoLoad) {
  const io::TemporaryFile path;
  on_two_nodes(2, path, moving(GetParam()), [&](comm::Comm& comm, Rank& rank) {
    const Off mine = comm.rank() * 4 * kPage;
    EXPECT_FALSE(rank.write(bytes_at(mine, 4 * kPage), mine, Returns::at_once).mine);
    EXPECT_EQ(rank.traffic().messages, 0);
    EXPECT_EQ(rank.traffic().shared_bytes, 4 * kPage);
    rank.behind->serve_older(rank.target, 0);
    EXPECT_TRUE(comm.barrier());
    EXPECT_TRUE(path.holds(bytes_at(0, 8 * kPage)));
    EXPECT_TRUE(comm.barrier());
    rank.behind->flush_together(rank.target);
  });
}

// A rank alone needs its bytes in the file: it does not wait for a collective call.
TEST_P(Moves, AFlushOfOneRankBringsItsBytesIntoTheFile) {
  const io::TemporaryFile path;
  on_two_nodes(2, path, moving(GetParam()), [&](comm::Comm& comm, Rank& rank) {
    if (comm.rank() == 0) {
      for (const int64_t page : {0, 1, 2, 3})
        EXPECT_FALSE(rank.write(bytes_at(page * kPage, 100), page * kPage).mine);
      rank.behind->flush(rank.target);
      const std::vector<std::byte> file = path.contents();
      ASSERT_EQ(file.size(), size_t(3 * kPage + 100));
      for (const int64_t page : {0, 1, 2, 3})
        EXPECT_EQ(file[size_t(page * kPage)], value_at(page * kPage));
    }
    EXPECT_TRUE(comm.barrier());  // the other one has been answering until here
    rank.behind->flush_together(rank.target);
    EXPECT_TRUE(comm.barrier());
  });
}

io::HeldFile held_file(const io::TemporaryFile& path, io::Hold& hold) {
  return {io::find_mechanism("pwrite")->open({.path = path.path()}).value(), hold};
}

// Nor does it come back while a collective call of another thread still has them.
TEST_P(Moves, AFlushOfOneRankWaitsForWhatACollectiveCallHasTakenAlong) {
  const io::TemporaryFile path;
  io::Hold hold;
  on_two_nodes(2, path, moving(GetParam()), [&](comm::Comm& comm, Rank& rank) {
    if (comm.rank() == 1) {
      io::HeldFile held = held_file(path, hold);
      rank.behind->flush_together({held, nullptr});
      EXPECT_TRUE(held.close());
    } else {
      EXPECT_FALSE(rank.write(bytes_at(kPage, 100), kPage).mine);
      const std::jthread together([&] { rank.behind->flush_together(rank.target); });
      hold.wait_until_someone_waits();
      const std::jthread later([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        hold.open();
      });
      rank.behind->flush(rank.target);
      EXPECT_EQ(path.contents().size(), size_t(kPage + 100));
    }
    EXPECT_TRUE(comm.barrier());
  });
}

// One thread's write is on its way into a page of this node, which is just leaving, while a whole
// collective call of another thread goes by.
void write_while_a_collective_call_goes_by(Rank& rank, const io::TemporaryFile& path,
                                           std::span<const std::byte> bytes) {
  io::Hold hold;
  io::HeldFile held = held_file(path, hold);
  EXPECT_FALSE(rank.write(bytes_at(kPage, 100), kPage).mine);
  const std::jthread flushing([&] { rank.behind->flush({held, nullptr}); });
  hold.wait_until_someone_waits();
  const std::jthread writing([&] { EXPECT_FALSE(rank.write(bytes, kPage).mine); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const std::jthread together([&] { rank.behind->flush_together(rank.target); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  hold.open();
}

TEST(Shipping, AWriteThatACollectiveCallHasOvertakenDoesNotOvertakeALaterOne) {
  const io::TemporaryFile path;
  constexpr std::byte kOld{1}, kNew{2};
  on_two_nodes(2, path, moving(kCalls), [&](comm::Comm& comm, Rank& rank) {
    if (comm.rank() == 1) {
      rank.behind->flush_together(rank.target);
      rank.behind->flush_together(rank.target);
    } else {
      write_while_a_collective_call_goes_by(rank, path, std::vector(100, kOld));
      EXPECT_FALSE(rank.write(std::vector(100, kNew), kPage).mine);
      io::Hold hold;
      io::HeldFile late = held_file(path, hold);
      const std::jthread later([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        hold.open();
      });
      rank.behind->flush_together({late, nullptr});
    }
    EXPECT_TRUE(comm.barrier());
  });
  EXPECT_EQ(path.contents()[kPage], kNew);
}

// There is memory for one load. So a load for another owner sends the first to the pages of this
// node.
void keep_here(Rank& rank, int64_t page, Off at) {
  EXPECT_FALSE(rank.write(bytes_at(page * kPage + at, 100), page * kPage + at).mine);
  EXPECT_FALSE(rank.write(bytes_at((page + 1) * kPage + at, 100), (page + 1) * kPage + at).mine);
  EXPECT_FALSE(rank.write(bytes_at(page * kPage + at + 100, 100), page * kPage + at + 100).mine);
}

TEST(Shipping, WhatARankKeptHereBeforeAllMetMakesNoPageOfOthersLeaveInParts) {
  const io::TemporaryFile path;
  on_two_nodes(4, path, moving(kCalls, 2 * kLoad), [&](comm::Comm& comm, Rank& rank) {
    if (comm.rank() == 0) keep_here(rank, 2, 0);
    rank.behind->flush_together(rank.target);
    rank.behind->flush_together(rank.target);  // nobody has any: loads go to their owners again
    EXPECT_TRUE(comm.barrier());               // nobody flushes any more
    if (comm.rank() == 1) keep_here(rank, 2, 1000);
    EXPECT_TRUE(comm.barrier());
    if (comm.rank() == 0) {
      EXPECT_FALSE(rank.write(bytes_at(2 * kPage + 2000, 100), 2 * kPage + 2000).mine);
      EXPECT_EQ(path.contents()[2 * kPage + 1000], std::byte{0}) << "it waits for its neighbours";
    }
    EXPECT_TRUE(comm.barrier());
    rank.behind->flush_together(rank.target);
    EXPECT_TRUE(comm.barrier());
  });
  for (const Off at : {0, 1000, 2000})
    EXPECT_EQ(path.contents()[2 * kPage + at], value_at(2 * kPage + at));
}

// At the end of MPI nobody may ask anybody.
TEST_P(Moves, AtTheEndEachWritesWhatItStillHas) {
  const io::TemporaryFile path;
  on_two_nodes(4, path, moving(GetParam()), [&](comm::Comm& comm, Rank& rank) {
    for (int64_t i = comm.rank(); i < 400; i += 4)
      EXPECT_FALSE(rank.write(bytes_at(i * 100, 100), i * 100).mine);
    rank.receiving = {};
    rank.behind->end_alone(rank.target);
    rank.behind->flush(rank.target);
    EXPECT_TRUE(comm.barrier());
    rank.behind->flush_together(rank.target);  // closed in MPI_Finalize
  });
  EXPECT_TRUE(path.holds(bytes_at(0, 40'000)));
}

INSTANTIATE_TEST_SUITE_P(Every, Moves, testing::ValuesIn(kProgresses),
                         [](const auto& tested) { return to_string(tested.param); });

// MPI has no communicator left, when the first loads are to leave.
class NoParcels final : public comm::Borrowed {
 public:
  using Borrowed::Borrowed;
  Result<std::unique_ptr<comm::Parcels>> parcels() override {
    return fail(ErrorClass::communication, "MPI_Comm_dup", "none is left");
  }
};

TEST(Shipping, WithoutParcelsEachNodeWritesItsOwnAndSaysSo) {
  const io::TemporaryFile path;
  comm::run_thread_team(4,
                        [&](comm::Comm& comm) {
                          NoParcels poor(comm);
                          Rank rank(poor, path.path(), moving(kCalls));
                          EXPECT_EQ(rank.behind->why_not_shipped(), "");
                          for (int64_t i = comm.rank(); i < 400; i += 4) {
                            EXPECT_FALSE(rank.write(bytes_at(i * 100, 100), i * 100).mine);
                            if (i / 4 == 50) rank.behind->flush_together(rank.target);
                          }
                          rank.behind->flush_together(rank.target);
                          const StagedNotes notes = rank.behind->notes();
                          EXPECT_FALSE(notes.failure);
                          EXPECT_EQ(notes.written_bytes, 10'000);
                          EXPECT_NE(notes.why_not_shipped.find("none is left"), std::string::npos);
                          EXPECT_EQ(notes.spent.traffic.messages, 0);
                          EXPECT_TRUE(comm.barrier());
                        },
                        {.nodes = 2});
  EXPECT_TRUE(path.holds(bytes_at(0, 40'000)));
}

// --- Who writes, and how much is said ---

// `ranks` take turns block by block over two nodes, each in calls of one block.
Traffic in_turns(int ranks, int64_t block, int64_t blocks, const io::TemporaryFile& path) {
  Traffic sum;
  std::mutex mutex;
  WriteBehindShape shape = moving(kCalls);
  shape.load_bytes = 65536;
  on_two_nodes(ranks, path, shape, [&](comm::Comm& comm, Rank& rank) {
    for (int64_t i = 0; i < blocks; ++i) {
      const Off at = (i * ranks + comm.rank()) * block;
      EXPECT_FALSE(rank.write(bytes_at(at, block), at).mine);
    }
    rank.behind->flush_together(rank.target);
    EXPECT_TRUE(comm.barrier());
    const std::lock_guard lock(mutex);
    sum = sum + rank.traffic();
    EXPECT_EQ(rank.behind->notes().written_bytes, block * blocks);
  });
  return sum;
}

TEST(Shipping, PiecesOfTwoNodesLeaveAsWholePages) {
  const io::TemporaryFile path;
  const Traffic sum = in_turns(4, 64, 256, path);
  EXPECT_EQ(sum.writes, 4 * 64 * 256 / kPage);
  EXPECT_TRUE(path.holds(bytes_at(0, 4 * 64 * 256)));
}

constexpr int kAgedPages = 200;

struct Hasty {
  int64_t writes = 0;
  int tries = 0;  // to write pages for their age, while they are filled
};

// Two ranks send each other every other piece, and threads of theirs are in haste meanwhile.
Hasty flush_in_haste(const io::TemporaryFile& path) {
  std::atomic<int64_t> writes = 0;
  std::atomic<int> tries = 0;
  on_two_nodes(2, path, moving(Progress::calls, kAgedPages * kPage * 4),
               [&](comm::Comm& comm, Rank& rank) {
                 for (Off at = comm.rank() * 64; at < kAgedPages * kPage; at += 128)
                   rank.write(bytes_at(at, 64), at);
                 std::jthread hasty([&](const std::stop_token& stop) {
                   while (!stop.stop_requested()) {
                     if (!rank.behind->shipping()->moving_together(60)) continue;
                     rank.behind->serve_older(rank.target, 0);
                     ++tries;
                   }
                 });
                 rank.behind->flush_together(rank.target);
                 hasty = {};
                 writes += rank.traffic().writes;
               });
  return {writes, tries};
}

// However long that takes, and however short the time that bytes may be accepted. A busy machine
// may let no thread in meanwhile: then once more.
TEST(Shipping, PagesAreNotWrittenForTheirAgeWhileOthersSendToThem) {
  Hasty seen;
  for (int again = 0; again < 50 && seen.tries == 0; ++again) {
    const io::TemporaryFile path;
    const double begin_s = now_s();
    seen = flush_in_haste(path);
    if (now_s() - begin_s < 1) EXPECT_EQ(seen.writes, kAgedPages);  // else it was a standstill
    EXPECT_TRUE(path.holds(bytes_at(0, kAgedPages * kPage)));
  }
  EXPECT_GT(seen.tries, 0);
}

// Half of the bytes are for the other node, whose two ranks own pages: two loads a rank.
TEST(Shipping, ALoadIsOneMessageAndHardlyMoreThanItsBytes) {
  const io::TemporaryFile path;
  const Traffic sum = in_turns(4, 64, 256, path);
  EXPECT_EQ(sum.messages, 4 * 2);
  const int64_t shipped = 4 * 64 * 256 / 2;
  EXPECT_GE(sum.message_bytes, shipped);
  EXPECT_LE(sum.message_bytes, shipped + shipped / 12) << "five bytes for each piece of 64";
}

// liao-2007's baseline against its two stages: a message for each write, or for as many as fit.
TEST(Shipping, OneStageSendsEachWriteAtOnce) {
  for (const int stages : {1, 2}) {
    const int messages = stages == 1 ? 10 : 0;
    const io::TemporaryFile path;
    WriteBehindShape shape = moving(kThread);
    shape.stages = stages;
    on_two_nodes(2, path, shape, [&](comm::Comm& comm, Rank& rank) {
      if (comm.rank() == 0) {
        for (int i = 0; i < 10; ++i)  // page 1 is the other's
          EXPECT_FALSE(rank.write(bytes_at(kPage + i * 100, 100), kPage + i * 100).mine);
        EXPECT_EQ(rank.traffic().messages, messages) << stages << " stages";
      }
      EXPECT_TRUE(comm.barrier());
      rank.behind->flush_together(rank.target);
      EXPECT_TRUE(comm.barrier());
    });
  }
}

TEST(Shipping, FullLoadsLeaveAtOnceByTheThread) {
  const io::TemporaryFile path;
  on_two_nodes(2, path, moving(kThread), [&](comm::Comm& comm, Rank& rank) {
    if (comm.rank() == 0) {
      for (int i = 0; i < 40; ++i)  // page 1 is the other's
        EXPECT_FALSE(rank.write(bytes_at(kPage + i * 100, 100), kPage + i * 100).mine);
      EXPECT_EQ(rank.traffic().messages, 2);
    }
    EXPECT_TRUE(comm.barrier());
    rank.behind->flush_together(rank.target);
    EXPECT_TRUE(comm.barrier());
  });
}

// What waits for a collective call is in no message before.
TEST(Shipping, ByCallsNothingMovesBetweenThem) {
  const io::TemporaryFile path;
  on_two_nodes(2, path, moving(kCalls), [&](comm::Comm& comm, Rank& rank) {
    for (int i = 0; i < 40; ++i)
      EXPECT_FALSE(rank.write(bytes_at(kPage + i * 100, 100), kPage + i * 100).mine);
    EXPECT_EQ(rank.traffic().messages, 0);
    EXPECT_TRUE(comm.barrier());
    rank.behind->flush_together(rank.target);
    if (comm.rank() == 0) EXPECT_EQ(rank.traffic().messages, 3);
    rank.behind->flush_together(rank.target);
    if (comm.rank() == 0) EXPECT_EQ(rank.traffic().messages, 3) << "nobody has anything";
  });
}

// --- Losses ---

TEST_P(Moves, WhatAnOwnerLosesIsToldToTheOtherNodeWithItsPlace) {
  const io::TemporaryFile path;
  on_two_nodes(4, path, moving(GetParam()),
               [&](comm::Comm& comm, Rank& rank) {
                 if (comm.rank() == 0)
                   EXPECT_FALSE(rank.write(bytes_at(3 * kPage + 7, 100), 3 * kPage + 7).mine);
                 rank.behind->flush_together(rank.target);
                 const StagedNotes notes = rank.behind->notes();
                 ASSERT_TRUE(notes.failure);
                 EXPECT_EQ(notes.failure->error_class, ErrorClass::no_space);
                 EXPECT_EQ(notes.failure->sys_errno, ENOSPC);
                 EXPECT_EQ(notes.failure->operation, "write");
                 EXPECT_EQ(notes.lost, (std::vector{Extent{3 * kPage + 7, 3 * kPage + 107}}));
                 EXPECT_EQ(notes.lost_bytes, 100);
                 EXPECT_TRUE(comm.barrier());
               },
               {.nth_write = 1, .write_errno = ENOSPC});
}

}  // namespace
}  // namespace penstock::exec::shipping_test
