// The contract of Comm, on threads. MpiComm is held to the same one by the programs in tests/.
#include "comm/thread_comm.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "comm/agreement.hpp"
#include "comm/slots_checks.hpp"

namespace penstock::comm::thread_comm_test {
namespace {

std::vector<std::byte> pattern(int seed, size_t n) {
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = std::byte(seed * 31 + int(i));
  return bytes;
}

TEST(ThreadComm, GathersInRankOrder) {
  run_thread_team(5, [](Comm& comm) {
    const int mine = 100 + comm.rank();
    std::vector<int> all(5);
    ASSERT_TRUE(
        comm.allgather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all))));
    EXPECT_EQ(all, (std::vector{100, 101, 102, 103, 104}));
    const auto on_root = comm.gather(pattern(comm.rank(), size_t(comm.rank())), 2);
    ASSERT_TRUE(on_root);
    EXPECT_EQ(on_root->size(), comm.rank() == 2 ? 10u : 0u);
  });
}

TEST(ThreadComm, ReducesAgainAndAgain) {
  run_thread_team(4, [](Comm& comm) {
    for (int round = 0; round < 200; ++round) {
      int64_t v[2] = {comm.rank() + round, -comm.rank()};
      ASSERT_TRUE(comm.all_max(v));
      EXPECT_EQ(v[0], 3 + round);
      EXPECT_EQ(v[1], 0);
      int64_t s[1] = {comm.rank()};
      ASSERT_TRUE(comm.all_sum(s));
      EXPECT_EQ(s[0], 6);
    }
  });
}

TEST(Agreement, TellsEachRankOfAll) {
  run_thread_team(3, [](Comm& comm) {
    constexpr auto kLeast = std::numeric_limits<int64_t>::min();
    const bool last = comm.rank() == 2;
    Agreement agreed;
    const auto some = agreed.some(last), none = agreed.some(false);
    const auto largest = agreed.largest(-10 * comm.rank());
    const auto alike = agreed.alike(kLeast), unlike = agreed.alike(last ? kLeast : 0);
    EXPECT_EQ(agreed[some], last) << "before reach() a rank knows of itself alone";
    EXPECT_TRUE(agreed[unlike]);
    ASSERT_TRUE(agreed.reach(comm));
    EXPECT_TRUE(agreed[some]);
    EXPECT_FALSE(agreed[none]);
    EXPECT_EQ(agreed[largest], 0);
    EXPECT_TRUE(agreed[alike]);
    EXPECT_FALSE(agreed[unlike]);
  });
}

TEST(Agreement, TakesNoMoreThanItHasPlacesFor) {
  Agreement agreed;
  for (size_t i = 0; i < Agreement::kMost; ++i) (void)agreed.some(true);
  EXPECT_THROW((void)agreed.some(true), std::out_of_range);
}

TEST(ThreadComm, TakesBytesFromWhereTheyLieInPieces) {
  for (const int64_t block : {1, 8, 16, 24})
    run_thread_team(2, [&](Comm& comm) {
      auto t = comm.transfers();
      constexpr int64_t kCount = 100;
      const std::vector<std::byte> memory = pattern(comm.rank(), size_t(3 * block * kCount));
      std::vector<std::byte> in(size_t(block * kCount)), backwards(in.size());
      const int other = 1 - comm.rank();
      t->receive(other, 5, in);
      t->receive(other, 5, backwards);
      t->send_strided(other, 5, {memory.data(), block, 3 * block, kCount});
      t->send_strided(other, 5,
                      {memory.data() + 3 * block * (kCount - 1), block, -3 * block, kCount});
      ASSERT_TRUE(t->finish());
      const std::vector<std::byte> theirs = pattern(other, memory.size());
      for (int64_t i = 0; i < kCount; ++i)
        for (int64_t b = 0; b < block; ++b) {
          EXPECT_EQ(in[size_t(i * block + b)], theirs[size_t(3 * block * i + b)]);
          EXPECT_EQ(backwards[size_t(i * block + b)],
                    theirs[size_t(3 * block * (kCount - 1 - i) + b)]);
        }
    });
}

TEST(ThreadComm, DeliversInOrderPerSenderAndTag) {
  run_thread_team(3, [](Comm& comm) {
    auto t = comm.transfers();
    std::vector<std::vector<std::byte>> out, in;
    for (int to = 0; to < 3; ++to)
      for (int i = 0; i < 8; ++i) out.push_back(pattern(comm.rank() * 100 + i, size_t(i * 1000)));
    for (int from = 0; from < 3; ++from)
      for (int i = 0; i < 8; ++i) in.emplace_back(size_t(i * 1000));
    for (int from = 0; from < 3; ++from)
      for (int i = 0; i < 8; ++i) t->receive(from, i % 2, in[size_t(from * 8 + i)]);
    for (int to = 0; to < 3; ++to)
      for (int i = 0; i < 8; ++i) t->send(to, i % 2, out[size_t(to * 8 + i)]);
    int events = 0;
    while (t->next()) ++events;
    EXPECT_EQ(events, 48);
    ASSERT_TRUE(t->finish());
    for (int from = 0; from < 3; ++from)
      for (int i = 0; i < 8; ++i)
        EXPECT_EQ(in[size_t(from * 8 + i)], pattern(from * 100 + i, size_t(i * 1000)));
  });
}

TEST(ThreadComm, ReportsAMessageOfTheWrongSize) {
  run_thread_team(2, [](Comm& comm) {
    auto t = comm.transfers();
    std::vector<std::byte> bytes(comm.rank() == 0 ? 10 : 20);
    if (comm.rank() == 0) t->send(1, 0, bytes);
    if (comm.rank() == 1) t->receive(0, 0, bytes);
    const auto r = t->finish();
    EXPECT_EQ(bool(r), comm.rank() == 0);
    if (!r) {
      EXPECT_EQ(r.error().error_class, ErrorClass::communication);
    }
  });
}

// How many of `ranks` are inside at a time, as each sees it while inside.
int most_inside(Gate& gate, std::atomic<int>& inside, int rounds) {
  int most = 0;
  for (int i = 0; i < rounds; ++i) {
    EXPECT_TRUE(gate.enter());
    most = std::max(most, ++inside);
    std::this_thread::yield();
    --inside;
    gate.leave();
  }
  return most;
}

TEST(ThreadComm, ANodeLockLetsOneRankOfANodeInAtATime) {
  std::atomic<int> inside[2] = {0, 0};
  run_thread_team(5,
                  [&](Comm& comm) {
                    const auto lock = comm.node_lock();
                    ASSERT_TRUE(lock);
                    EXPECT_EQ(most_inside(**lock, inside[comm.own_node()], 200), 1);
                  },
                  {.nodes = 2});
}

TEST(ThreadComm, ANodeIsNotLockedOutByAnother) {
  run_thread_team(2,
                  [](Comm& comm) {
                    const auto lock = comm.node_lock();
                    ASSERT_TRUE(lock);
                    ASSERT_TRUE((*lock)->enter());
                    ASSERT_TRUE(comm.barrier());  // both are inside, each of its own
                    (*lock)->leave();
                  },
                  {.nodes = 2});
}

TEST(ThreadComm, ANodeLockOutlivesItsTeam) {
  std::shared_ptr<NodeLock> lock;
  run_thread_team(1, [&](Comm& comm) { lock = comm.node_lock().value(); });
  EXPECT_TRUE(lock->enter());
  lock->leave();
}

TEST(ThreadComm, SplitsIntoTheRanksOfEachNode) {
  for (const int nodes : {1, 2, 3, 5})
    run_thread_team(5,
                    [nodes](Comm& comm) {
                      const auto part = comm.split_by_node();
                      ASSERT_TRUE(part);
                      EXPECT_EQ((*part)->nodes(), 1);
                      int64_t here[2] = {1, -comm.rank()};
                      ASSERT_TRUE((*part)->all_sum({here, 1}));
                      EXPECT_EQ(here[0], (*part)->size());
                      ASSERT_TRUE((*part)->all_max({here + 1, 1}));
                      EXPECT_EQ(comm.rank() + here[1],
                                (*part)->rank());  // consecutive, in their order
                      int64_t last[1] = {comm.own_node()};
                      ASSERT_TRUE(comm.all_max(last));
                      EXPECT_EQ(last[0], nodes - 1);
                    },
                    {.nodes = nodes});
}

// A sparse exchange: each rank sends to some that do not know of it, and all know when to stop.
TEST(ThreadComm, ParcelsReachRanksThatDoNotExpectThem) {
  run_thread_team(5, [](Comm& comm) {
    auto parcels = *comm.parcels();
    for (int round = 1; round <= 50; ++round) {
      const int to = (comm.rank() + round) % comm.size();
      const bool sends = (comm.rank() + round) % 3 != 0;
      for (int i = 0; sends && i < 4; ++i)
        parcels->send(to, std::vector<std::byte>(size_t(i + 1), std::byte(comm.rank())));
      std::vector<std::vector<size_t>> sizes(size_t(comm.size()));
      for (bool arrived = false; !arrived || !parcels->all_have_arrived();) {
        while (const auto back = parcels->delivered()) EXPECT_EQ(back->peer, to);
        while (const auto parcel = parcels->receive()) {
          EXPECT_EQ(parcel->bytes.front(), std::byte(parcel->peer));
          sizes[size_t(parcel->peer)].push_back(parcel->bytes.size());
        }
        if (arrived || !parcels->are_delivered(parcels->sent())) continue;
        parcels->arrive();
        arrived = true;
      }
      for (int from = 0; from < comm.size(); ++from) {
        const bool mine = (from + round) % comm.size() == comm.rank() && (from + round) % 3 != 0;
        EXPECT_EQ(sizes[size_t(from)],
                  mine ? (std::vector<size_t>{1, 2, 3, 4}) : std::vector<size_t>());
      }
      ASSERT_TRUE(comm.barrier());
    }
    EXPECT_TRUE(parcels->status());
  });
}

TEST(ThreadComm, SlotsTakeParcelsInOrderAndThereAreAsManyAsThereAre) {
  for (const int ranks : {2, 3, 5})
    run_thread_team(ranks, [](Comm& comm) { EXPECT_EQ(SlotsCheck(comm).problem(), ""); });
}

// What is on its way comes back to a sender who gives up.
TEST(ThreadComm, SlotsGiveBackWhatNobodyHasTakenOut) {
  run_thread_team(2, [](Comm& comm) {
    auto slots = *comm.slots({1, 100});
    if (comm.rank() == 0) {
      ASSERT_EQ(slots->way_to(1), Way::open);
      slots->put(1, std::vector<std::byte>(3, std::byte{9}));
      EXPECT_EQ(slots->way_to(1), Way::busy);
      EXPECT_FALSE(slots->quiet());
      const auto back = slots->take_back();
      ASSERT_EQ(back.size(), 1u);
      EXPECT_EQ(back.front().peer, 1);
      EXPECT_EQ(back.front().bytes, std::vector<std::byte>(3, std::byte{9}));
    }
    EXPECT_TRUE(comm.barrier());
  });
}

TEST(Borrow, IsTheSameRankAndLeavesTheOwnerAlone) {
  run_thread_team(2, [](Comm& comm) {
    {
      const auto borrowed = borrow(comm);
      EXPECT_EQ(borrowed->rank(), comm.rank());
      int64_t n[1] = {1};
      ASSERT_TRUE(borrowed->all_sum(n));
      EXPECT_EQ(n[0], 2);
    }
    EXPECT_TRUE(comm.barrier());
  });
}

TEST(Agree, GivesEveryRankTheWorstClassAndKeepsTheDetailWhereItFailed) {
  run_thread_team(4, [](Comm& comm) {
    Result<void> mine;
    if (comm.rank() == 1) mine = os_error("pwrite", "x", 28);
    if (comm.rank() == 2) mine = os_error("pwrite", "y", 5);
    const auto r = agree(comm, mine);
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().error_class, ErrorClass::io);
    if (comm.rank() == 2) {
      EXPECT_EQ(r.error().detail, "y");
    }
    EXPECT_TRUE(agree(comm, {}));
  });
}

}  // namespace
}  // namespace penstock::comm::thread_comm_test
