// What the pages of one node lose is told to the others: where all meet, whenever it was lost, and
// by the owner whom a rank asks to have its bytes in the file.
#include <gtest/gtest.h>

#include <cerrno>
#include <vector>

#include "comm/thread_comm.hpp"
#include "exec/shipping_for_tests.hpp"
#include "io/temporary_file.hpp"

namespace penstock::exec::shipping_losses_test {
namespace {

WriteBehindShape moving(Progress progress) {
  return {.page_bytes = kPage,
          .limit_bytes_per_rank = kMany,
          .progress = progress,
          .load_bytes = kLoad};
}

void write_100(Rank& rank, Off at) { EXPECT_FALSE(rank.write(bytes_at(at, 100), at).mine); }

void expect_lost(const Rank& rank, ErrorClass error_class, std::vector<Extent> lost) {
  const StagedNotes notes = rank.behind->notes();
  ASSERT_TRUE(notes.failure);
  EXPECT_EQ(notes.failure->error_class, error_class);
  EXPECT_EQ(notes.lost, lost);
  EXPECT_EQ(notes.failures, int64_t(lost.size()));
  EXPECT_EQ(notes.lost_bytes, 100 * int64_t(lost.size()));
}

// Four ranks on two nodes; each one's first write to the file finds the disk full.
template <class Body>
void on_two_full_disks(Progress progress, Body&& body) {
  const io::TemporaryFile path;
  comm::run_thread_team(4,
                        [&](comm::Comm& comm) {
                          Rank rank(comm, path.path(), moving(progress), {},
                                    {.nth_write = 1, .write_errno = ENOSPC});
                          body(comm, rank);
                          EXPECT_TRUE(comm.barrier());
                        },
                        {.nodes = 2, .used_segments = true});
}

// Of the last rank's page.
constexpr Extent kLost{3 * kPage + 7, 3 * kPage + 107};

class LossesOfNodes : public testing::TestWithParam<Progress> {};

INSTANTIATE_TEST_SUITE_P(LossesOfNodes, LossesOfNodes,
                         testing::Values(Progress::calls, Progress::thread, Progress::rma));

// A rank's own page leaves in a call of its own. Then nobody has anything for another node.
TEST_P(LossesOfNodes, WhatWasLostBeforeAllMeetIsToldThen) {
  on_two_full_disks(GetParam(), [](comm::Comm& comm, Rank& rank) {
    if (comm.rank() == 3) {
      write_100(rank, kLost.begin);
      rank.behind->flush(rank.target);
    }
    EXPECT_TRUE(comm.barrier());
    for (int times = 0; times < 2; ++times) {
      rank.behind->flush_together(rank.target);
      expect_lost(rank, ErrorClass::no_space, {kLost});
    }
  });
}

TEST_P(LossesOfNodes, WhatIsLostWhileAllMeetIsToldThen) {
  on_two_full_disks(GetParam(), [](comm::Comm& comm, Rank& rank) {
    if (comm.rank() == 3) write_100(rank, kLost.begin);
    rank.behind->flush_together(rank.target);
    expect_lost(rank, ErrorClass::no_space, {kLost});
  });
}

// The answer to a flush of one rank says that its bytes are not in the file.
TEST(ShippingLosses, AnOwnerThatIsAskedTellsWhatItLost) {
  on_two_full_disks(Progress::thread, [](comm::Comm& comm, Rank& rank) {
    if (comm.rank() == 0) {
      write_100(rank, kLost.begin);
      rank.behind->flush(rank.target);
      expect_lost(rank, ErrorClass::no_space, {kLost});
    }
    EXPECT_TRUE(comm.barrier());
    rank.behind->flush_together(rank.target);
    expect_lost(rank, ErrorClass::no_space, {kLost});
  });
}

// A loss of one node, then one of another, which is worse.
TEST(ShippingLosses, OfSeveralNodesAllAreTold) {
  const io::TemporaryFile path;
  comm::run_thread_team(
      3,
      [&](comm::Comm& comm) {
        const bool fills = comm.rank() == 0;
        Rank rank(comm, path.path(), moving(Progress::calls), {},
                  {.at_offset = fills ? 0 : kPage, .write_errno = fills ? ENOSPC : EIO});
        if (comm.rank() == 0) write_100(rank, 0);
        rank.behind->flush_together(rank.target);
        expect_lost(rank, ErrorClass::no_space, {{0, 100}});
        if (comm.rank() == 1) write_100(rank, kPage);
        rank.behind->flush_together(rank.target);
        EXPECT_EQ(rank.behind->notes().failures, 2);
        EXPECT_EQ(rank.behind->notes().failure->error_class, ErrorClass::io);
        EXPECT_TRUE(comm.barrier());
      },
      {.nodes = 3, .used_segments = true});
}

}  // namespace
}  // namespace penstock::exec::shipping_losses_test
