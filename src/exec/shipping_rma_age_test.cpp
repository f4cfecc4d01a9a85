// Loads that are put into their owners' memory, when they get old: what a killed job loses of them
// is bounded in seconds, whatever the owner does.
#include <gtest/gtest.h>

#include <vector>

#include "exec/shipping_rma_for_tests.hpp"
#include "io/eventually.hpp"
#include "io/temporary_file.hpp"

namespace penstock::exec::shipping_rma_age_test {
namespace {

TEST(ShippingByRmaInTime, WhatGetsOldLeavesByTheOwnNode) {
  const io::TemporaryFile path;
  on_nodes(2, path.path(), kMany, [&](Rank& rank, comm::Comm& comm) {
    if (comm.rank() == 0) {
      EXPECT_EQ(rank.write(bytes_at(kPage, 100), kPage).prefix_bytes, 100);
      rank.behind->serve_older(rank.target, 0);
      EXPECT_EQ(path.contents().size(), size_t(kPage + 100));
    }
    rank.behind->flush_together(rank.target);
    EXPECT_TRUE(comm.barrier());
  });
}

// The owner does not look, so its rank's bytes are in the file twice rather than late.
TEST(ShippingByRmaInTime, WhatWasPutAndGetsOldIsInTheFileToo) {
  const io::TemporaryFile path;
  on_nodes(2, path.path(), kMany, [&](Rank& rank, comm::Comm& comm) {
    if (comm.rank() == 0) {
      write_and_write_again(rank);
      rank.behind->serve_older(rank.target, 0);
      const std::vector<std::byte> file = path.contents();
      ASSERT_EQ(file.size(), size_t(kPage + 2500));
      EXPECT_EQ(file[kPage], kNew);
      EXPECT_EQ(file[kPage + 100], kOld);
      const int64_t writes = rank.traffic().writes;
      rank.behind->serve_older(rank.target, 0);
      EXPECT_EQ(rank.traffic().writes, writes) << "once is enough";
    }
    EXPECT_TRUE(comm.barrier());
    rank.behind->flush_together(rank.target);
    EXPECT_TRUE(comm.barrier());
    const std::vector<std::byte> file = path.contents();
    EXPECT_EQ(file.size(), size_t(kPage + 2500));
    EXPECT_EQ(file[kPage], kNew);
    EXPECT_EQ(file[kPage + 100], kOld);
  });
}

// Pages 1 and 9 are put in one load, so that page 5 is between bytes that the owner was given.
void write_around(Rank& rank) {
  const std::vector<std::byte> bytes(990, kOld);
  for (const int64_t page : {1, 9}) EXPECT_EQ(rank.write(bytes, page * kPage).prefix_bytes, 990);
  EXPECT_EQ(rank.traffic().messages, 1);
}

TEST(ShippingByRmaInTime, WhatGetsOldBetweenBytesThatWerePutIsInTheFileAtOnceWhateverTheOwnerDoes) {
  for (const bool owner_looks : {false, true}) {
    const io::TemporaryFile path;
    on_nodes(2, path.path(), kMany, [&](Rank& rank, comm::Comm& comm) {
      if (comm.rank() == 0) write_around(rank);
      EXPECT_TRUE(comm.barrier());
      if (comm.rank() == 1) EXPECT_EQ(owner_looks && rank.behind->step(rank.target), owner_looks);
      EXPECT_TRUE(comm.barrier());
      if (comm.rank() == 0) {
        for (const int64_t at : {0, 100}) {  // into a load that was copied, too
          EXPECT_EQ(rank.write(std::vector(100, kNew), 5 * kPage + at).prefix_bytes, 100);
          rank.behind->serve_older(rank.target, 0);
          const std::vector<std::byte> file = path.contents();
          ASSERT_GE(file.size(), size_t(5 * kPage + at + 100));
          EXPECT_EQ(file[size_t(5 * kPage + at)], kNew);
        }
        const int64_t writes = rank.traffic().writes;
        rank.behind->serve_older(rank.target, 0);
        EXPECT_EQ(rank.traffic().writes, writes) << "once is enough";
      }
      rank.behind->flush_together(rank.target);
      EXPECT_TRUE(comm.barrier());
      EXPECT_EQ(path.contents()[5 * kPage + 199], kNew);
      EXPECT_EQ(path.contents()[9 * kPage], kOld);
    });
  }
}

// Whoever looks whether the owner took something out waits a moment before it looks again.
void write_until_messages(Rank& rank, Off offset, int64_t messages) {
  EXPECT_TRUE(io::eventually([&] {
    EXPECT_EQ(rank.write(std::vector(1, kOld), offset).prefix_bytes, 1);
    return rank.traffic().messages == messages;
  }));
}

// Else what the owner was put first, and writes later, would stay until a collective call.
TEST(ShippingByRmaInTime, WhatGotOldSoIsPutToItsOwnerByTheNextWriteToAnyPlace) {
  const io::TemporaryFile path;
  on_nodes(2, path.path(), kMany, [&](Rank& rank, comm::Comm& comm) {
    if (comm.rank() == 0) {
      write_and_write_again(rank);
      rank.behind->serve_older(rank.target, 0);
      EXPECT_EQ(rank.traffic().messages, 1);
    }
    EXPECT_TRUE(comm.barrier());
    if (comm.rank() == 1) {
      EXPECT_TRUE(rank.behind->step(rank.target));
      rank.behind->serve_older(rank.target, 0);
      EXPECT_EQ(path.contents()[kPage], kOld) << "which came here later";
    }
    EXPECT_TRUE(comm.barrier());
    if (comm.rank() == 0) {
      write_until_messages(rank, 0, 2);
      rank.behind->serve_older(rank.target, 0);
      EXPECT_EQ(path.contents()[kPage], kNew) << "whatever the owner does";
    }
    EXPECT_TRUE(comm.barrier());
    if (comm.rank() == 1) {
      EXPECT_TRUE(rank.behind->step(rank.target));
      rank.behind->serve_older(rank.target, 0);
      EXPECT_EQ(path.contents()[kPage], kNew);
      EXPECT_EQ(path.contents()[kPage + 100], kOld);
    }
    EXPECT_TRUE(comm.barrier());
    rank.behind->flush_together(rank.target);
    EXPECT_TRUE(comm.barrier());
  });
}

// Three loads are copied, of which the second and the third bring the same bytes, and the second is
// put: if it gets old there, it is written before the third.
TEST(ShippingByRmaInTime, WhatWasCopiedAndPutAndGetsOldIsNotWrittenOverWhatWasCopiedBehindIt) {
  const io::TemporaryFile path;
  on_nodes(2, path.path(), kMany, [&](Rank& rank, comm::Comm& comm) {
    if (comm.rank() == 0) {
      write_around(rank);
      for (const std::byte value : {kOld, kNew})
        for (const Off at : {0, 990})
          EXPECT_EQ(rank.write(std::vector(990, value), 5 * kPage + at).prefix_bytes, 990);
      EXPECT_EQ(rank.traffic().messages, 1);
      rank.behind->serve_older(rank.target, 0);
      EXPECT_EQ(path.contents()[5 * kPage], kNew);
    }
    EXPECT_TRUE(comm.barrier());
    if (comm.rank() == 1) EXPECT_TRUE(rank.behind->step(rank.target));
    EXPECT_TRUE(comm.barrier());
    if (comm.rank() == 0) {
      write_until_messages(rank, 5 * kPage + 3000, 2);
      rank.behind->serve_older(rank.target, 0);
      EXPECT_EQ(path.contents()[5 * kPage], kNew);
      EXPECT_EQ(path.contents()[5 * kPage + 3000], kOld);
    }
    EXPECT_TRUE(comm.barrier());
    rank.behind->flush_together(rank.target);
    EXPECT_TRUE(comm.barrier());
    EXPECT_EQ(path.contents()[5 * kPage], kNew);
  });
}

}  // namespace
}  // namespace penstock::exec::shipping_rma_age_test
