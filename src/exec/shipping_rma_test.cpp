// Loads that are put into their owners' memory: they leave inside the call, one for each slot; what
// no owner takes out goes to the own node's pages, and never before what the owner was given.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "comm/borrow.hpp"
#include "comm/thread_comm.hpp"
#include "exec/shipping_rma_for_tests.hpp"
#include "io/eventually.hpp"
#include "io/forwarding_file.hpp"
#include "io/held_file.hpp"
#include "io/temporary_file.hpp"

namespace penstock::exec::shipping_rma_test {
namespace {

TEST(ShippingByRma, AFullLoadLeavesInsideTheCallAndTheNextWhenItIsTakenOut) {
  const io::TemporaryFile path;
  on_nodes(2, path.path(), kMany, [&](Rank& rank, comm::Comm& comm) {
    if (comm.rank() == 0) {
      write_a_load(rank, 1);
      EXPECT_EQ(rank.traffic().messages, 1);
      write_a_load(rank, 3);
      EXPECT_EQ(rank.traffic().messages, 1) << "the slot is full";
    }
    EXPECT_TRUE(comm.barrier());
    if (comm.rank() == 1) {
      EXPECT_TRUE(rank.behind->step(rank.target));
      EXPECT_FALSE(rank.behind->step(rank.target)) << "there was one";
    }
    EXPECT_TRUE(comm.barrier());
    if (comm.rank() == 0) {
      write_a_load(rank, 5);
      EXPECT_EQ(rank.traffic().messages, 2);
    }
    rank.behind->flush_together(rank.target);
    if (comm.rank() == 0) EXPECT_EQ(rank.traffic().writes, 0) << "all went to their owner";
  });
  EXPECT_EQ(path.contents().size(), size_t(5 * kPage + 2500));
}

// One slot; each of three ranks fills a load for rank 0, one after the other.
TEST(ShippingByRma, WhoGetsNoSlotKeepsItsLoadForTheCollectiveCallAndMayBeFirstThen) {
  const io::TemporaryFile path;
  on_nodes(4, path.path(), 1, [&](Rank& rank, comm::Comm& comm) {
    for (int round = 0; round < 3; ++round) {
      const int first = round + 1;
      const Off at = (comm.rank() - 1) * 4 * kPage + round * kPage / 4;
      const int64_t before = rank.traffic().messages;
      for (const bool early : {true, false}) {
        if (comm.rank() > 0 && early == (comm.rank() == first))
          EXPECT_EQ(rank.write(bytes_at(at, 2000), at).prefix_bytes, 2000);
        EXPECT_TRUE(comm.barrier());
      }
      EXPECT_EQ(rank.traffic().messages - before, comm.rank() == first ? 1 : 0);
      EXPECT_TRUE(comm.barrier());
      rank.behind->flush_together(rank.target);
    }
  });
  const std::vector<std::byte> file = path.contents();
  for (int sender = 0; sender < 3; ++sender)
    for (Off at = sender * 4 * kPage; at < sender * 4 * kPage + kPage / 2 + 2000; ++at)
      ASSERT_EQ(file[size_t(at)], value_at(at)) << at;
}

// The owner computes for as long as it likes: nobody waits for it.
TEST(ShippingByRma, WhatNoOwnerTakesOutGoesToThePagesOfTheOwnNode) {
  constexpr int kPages = 64;
  const io::TemporaryFile path;
  on_nodes(2, path.path(), 8 * kPage, [&](Rank& rank, comm::Comm& comm) {
    if (comm.rank() == 0)
      for (int64_t page = 1; page < kPages; page += 2)
        EXPECT_EQ(rank.write(bytes_at(page * kPage + 1, kPage - 1), page * kPage + 1).prefix_bytes,
                  kPage - 1);
    if (comm.rank() == 0) EXPECT_EQ(rank.traffic().messages, 1);
    EXPECT_TRUE(comm.barrier());  // of the program: the owner took out nothing before it
    rank.behind->flush_together(rank.target);
    EXPECT_GT(rank.traffic().writes, 0);
    EXPECT_TRUE(comm.barrier());
    EXPECT_FALSE(rank.behind->notes().failure);
  });
  const std::vector<std::byte> file = path.contents();
  for (int64_t page = 1; page < kPages; page += 2)
    for (Off at = page * kPage + 1; at < (page + 1) * kPage; ++at)
      ASSERT_EQ(file[size_t(at)], value_at(at)) << at;
}

// The one thing that waits: else the owner's older bytes could enter the file last.
TEST(ShippingByRma, BytesThatAreWrittenAgainDoNotOvertakeThoseTheOwnerWasGiven) {
  const io::TemporaryFile path;
  std::atomic<bool> written = false;
  on_nodes(2, path.path(), 1, [&](Rank& rank, comm::Comm& comm) {
    if (comm.rank() == 0) {
      write_a_load(rank, 1, kOld);  // one load is all there may be: the rest goes to this node
      EXPECT_EQ(rank.traffic().messages, 1);
    }
    EXPECT_TRUE(comm.barrier());
    if (comm.rank() == 1) {
      EXPECT_TRUE(rank.behind->step(rank.target));  // into its page, not into the file
      EXPECT_TRUE(path.contents().empty());
    }
    EXPECT_TRUE(comm.barrier());
    if (comm.rank() == 0) {
      write_a_load(rank, 1, kNew);
      rank.behind->serve_older(rank.target, 0);
      EXPECT_EQ(path.contents()[kPage], kNew);
      written = true;
    } else {
      EXPECT_TRUE(io::eventually([&] {
        rank.behind->step(rank.target);
        return written.load();
      }));
    }
    rank.behind->flush_together(rank.target);
    EXPECT_TRUE(comm.barrier());
    for (Off at = kPage; at < kPage + 2500; ++at)
      ASSERT_EQ(path.contents()[size_t(at)], kNew) << at;
  });
}

// Rank 0 stays in a collective call until the test lets it go on: nothing has moved then.
class LateParcels final : public comm::Borrowed {
 public:
  LateParcels(comm::Comm& owner, io::Hold& hold) : Borrowed(owner), hold_(hold) {}
  Result<std::unique_ptr<comm::Parcels>> parcels() override {
    if (rank() == 0) hold_.pass();
    return Borrowed::parcels();
  }

 private:
  io::Hold& hold_;
};

TEST(ShippingByRma, NorDoTheyWhileACollectiveCallOfAnotherThreadHasThose) {
  const io::TemporaryFile path;
  io::Hold hold;
  comm::run_thread_team(
      2,
      [&](comm::Comm& owner) {
        LateParcels comm(owner, hold);
        Rank rank(comm, path.path(), by_rma(1));
        until_nobody_takes_out(rank, comm);
        if (comm.rank() == 0) {
          write_a_load(rank, 1, kOld);  // one load is put, and what comes then stays on this node
          const std::jthread together([&] { rank.behind->flush_together(rank.target); });
          hold.wait_until_someone_waits();
          const std::jthread later([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
            hold.open();
          });
          EXPECT_EQ(rank.write(std::vector(100, kNew), kPage).prefix_bytes, 100);
          EXPECT_GT(path.contents().size(), size_t(kPage)) << "what came first";
        } else {
          rank.behind->flush_together(rank.target);
        }
        EXPECT_TRUE(comm.barrier());
        rank.behind->flush_together(rank.target);
        EXPECT_TRUE(comm.barrier());
        EXPECT_EQ(path.contents()[kPage], kNew);
        EXPECT_EQ(path.contents()[kPage + 100], kOld);
      },
      {.nodes = 2});
}

TEST(ShippingByRma, AFlushAsksForWhatAnotherThreadHasPutMeanwhile) {
  const io::TemporaryFile path;
  std::atomic<bool> flushed = false, looked = false;
  on_nodes(2, path.path(), kMany, [&](Rank& rank, comm::Comm& comm) {
    if (comm.rank() == 0) {
      write_a_load(rank, 1);  // there is something to ask for
      std::jthread writing([&] {
        for (int64_t page = 3; page < 401; page += 2) write_a_load(rank, page);
      });
      const std::jthread flushing([&] {
        rank.behind->flush(rank.target);
        flushed = true;
      });
      writing.join();
      EXPECT_TRUE(io::eventually([&] { return flushed.load(); }));
      looked = true;
      EXPECT_TRUE(comm.barrier());
      rank.behind->flush_together(rank.target);  // ends the other one, too
    } else {
      while (!looked) rank.behind->step(rank.target);
      EXPECT_TRUE(comm.barrier());
      rank.behind->flush_together(rank.target);
    }
    EXPECT_TRUE(comm.barrier());
  });
  EXPECT_EQ(path.contents().size(), size_t(399 * kPage + 2500));
}

// At the end of MPI nobody says any more what was taken out, and the I/O thread goes on.
TEST(ShippingByRma, WhatWasPutIsNotWrittenOnceMoreBehindTheEnd) {
  const io::TemporaryFile path;
  on_nodes(2, path.path(), kMany, [&](Rank& rank, comm::Comm& comm) {
    if (comm.rank() == 0) {
      write_and_write_again(rank);
      rank.behind->end_alone(rank.target);
      rank.behind->flush(rank.target);
      EXPECT_EQ(path.contents()[kPage], kNew);
      const int64_t writes = rank.traffic().writes;
      rank.behind->serve_older(rank.target, 0);
      EXPECT_EQ(rank.traffic().writes, writes);
      EXPECT_EQ(path.contents()[kPage], kNew);
    }
    EXPECT_TRUE(comm.barrier());
  });
}

// MPI has no communicator left for what the first collective call is to send.
class NoParcels final : public comm::Borrowed {
 public:
  using Borrowed::Borrowed;
  Result<std::unique_ptr<comm::Parcels>> parcels() override {
    return fail(ErrorClass::communication, "MPI_Comm_dup", "none is left");
  }
};

// Writes of rank 1 wait until the file has what rank 0 wrote last, or for a while.
class LateFile final : public io::ForwardingFile {
 public:
  LateFile(std::unique_ptr<MechanismFile> inner, const io::TemporaryFile& path, std::byte last)
      : ForwardingFile(std::move(inner)), path_(path), last_(last) {}
  std::optional<io::Fault> write(std::span<const std::byte> bytes, Off offset) override {
    for (int tries = 0; tries < 300 && !is_there(); ++tries)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return inner().write(bytes, offset);
  }

 private:
  bool is_there() const {
    const std::vector<std::byte> file = path_.contents();
    return file.size() > size_t(kPage) && file[kPage] == last_;
  }

  const io::TemporaryFile& path_;
  const std::byte last_;
};

TEST(ShippingByRma, WhereLoadsCannotBeSentTheNewerBytesAreTheLastToo) {
  const io::TemporaryFile path;
  comm::run_thread_team(2,
                        [&](comm::Comm& owner) {
                          NoParcels comm(owner);
                          Rank rank(comm, path.path(), by_rma(kMany));
                          until_nobody_takes_out(rank, comm);
                          if (comm.rank() == 1)
                            rank.file =
                                std::make_unique<LateFile>(std::move(rank.file), path, kNew);
                          const WriteBehind::Target target{*rank.file, nullptr};
                          if (comm.rank() == 0) {
                            write_and_write_again(rank);
                          }
                          EXPECT_TRUE(comm.barrier());
                          if (comm.rank() == 1) EXPECT_TRUE(rank.behind->step(target));
                          rank.behind->flush_together(target);
                          EXPECT_TRUE(comm.barrier());
                          EXPECT_EQ(path.contents()[kPage], kNew);
                          EXPECT_EQ(path.contents()[kPage + 100], kOld);
                        },
                        {.nodes = 2});
}

TEST(ShippingByRma, OneStagePutsEachWriteAtOnce) {
  const io::TemporaryFile path;
  comm::run_thread_team(2,
                        [&](comm::Comm& comm) {
                          WriteBehindShape shape = by_rma(kMany);
                          shape.stages = 1;
                          Rank rank(comm, path.path(), shape);
                          if (comm.rank() == 0)
                            for (int sent = 1; sent <= 3; ++sent) {
                              EXPECT_FALSE(rank.write(bytes_at(kPage, 100), kPage).mine);
                              // The one before may not be taken out yet; any call looks again.
                              EXPECT_TRUE(io::eventually([&] {
                                EXPECT_FALSE(rank.write({}, 0).mine);
                                return rank.traffic().messages == sent;
                              }));
                            }
                          EXPECT_TRUE(comm.barrier());
                          rank.behind->flush_together(rank.target);
                          EXPECT_TRUE(comm.barrier());
                        },
                        {.nodes = 2});
}

// --- Where it cannot be ---

TEST(ShippingByRma, RanksTurnToCallsWhileAnotherThreadLooksForWhatIsOld) {
  const io::TemporaryFile path;
  on_nodes(2, path.path(), kMany, [&](Rank& rank, comm::Comm& comm) {
    {
      const std::jthread looking([&](const std::stop_token& stop) {
        do rank.behind->serve_older(rank.target, 0);
        while (!stop.stop_requested());
      });
      rank.behind->shipping()->move_by_calls("no I/O thread could be started");
    }
    EXPECT_EQ(rank.behind->shipping()->progress(), Progress::calls);
    if (comm.rank() == 0) write_a_load(rank, 1);
    EXPECT_EQ(rank.traffic().messages, 0);
    rank.behind->flush_together(rank.target);
    EXPECT_TRUE(comm.barrier());
  });
  EXPECT_EQ(path.contents().size(), size_t(kPage + 2500));
}

class WithoutSlots final : public comm::Borrowed {
 public:
  using Borrowed::Borrowed;
  Result<std::unique_ptr<comm::Slots>> slots(const comm::SlotsShape&) override {
    return fail(ErrorClass::unsupported, "MPI_Win_allocate", "no windows here");
  }
};

TEST(ShippingByRma, WithoutOneSidedCommunicationItIsByCallsAndSaysWhy) {
  const io::TemporaryFile path;
  comm::run_thread_team(2,
                        [&](comm::Comm& owner) {
                          WithoutSlots comm(owner);
                          Rank rank(comm, path.path(), by_rma(kMany));
                          rank.receiving = {};
                          const Shipping& shipping = *rank.behind->shipping();
                          EXPECT_EQ(shipping.progress(), Progress::calls);
                          EXPECT_NE(shipping.why_calls().find("no windows here"),
                                    std::string::npos);
                          if (comm.rank() == 0) write_a_load(rank, 1);
                          EXPECT_EQ(rank.traffic().messages, 0);
                          rank.behind->flush_together(rank.target);
                          EXPECT_TRUE(comm.barrier());
                        },
                        {.nodes = 2});
  EXPECT_EQ(path.contents().size(), size_t(kPage + 2500));
}

}  // namespace
}  // namespace penstock::exec::shipping_rma_test
