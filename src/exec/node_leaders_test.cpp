// The exchange by node leaders: what is sent between nodes, counted; bundles larger than a load and
// writers that share boards; and what happens where there is no memory, or nothing to bring.
#include <gtest/gtest.h>

#include <cerrno>

#include "comm/borrow.hpp"
#include "comm/thread_comm.hpp"
#include "exec/blocks.hpp"
#include "exec/pipeline.hpp"
#include "exec/random_case.hpp"
#include "io/faulty.hpp"
#include "io/forwarding_file.hpp"
#include "io/temporary_file.hpp"

namespace penstock::exec::node_leaders_test {
namespace {

constexpr int64_t kBlock = 512;
constexpr int64_t kBlocks = 64;  // of each rank, interleaved with those of the others

const Exchange* node_leaders() { return find_exchange("node_leaders"); }

// So small that a bundle is several loads, and writers share boards.
constexpr Exchange kTiny{
    .name = "tiny", .summary = "for tests", .shares_pages = true, .outbox_bytes = 8192};

std::unique_ptr<io::MechanismFile> open_plain(const std::string& path) {
  return io::find_mechanism("pwrite")->open({path}).value();
}

Pipeline::Policy two_phase(int writers, int64_t cycle_bytes,
                           const Exchange* exchange = node_leaders()) {
  return {plan::find_algorithm("two_phase"), {writers, cycle_bytes}, nullptr, exchange};
}

struct Seen {
  Traffic traffic;
  std::string degraded;
};

// One collective write of blocks in turn; what each rank saw of it.
std::vector<Seen> write_once(int ranks, int nodes, const Pipeline::Policy& policy) {
  const io::TemporaryFile path;
  std::vector<Seen> seen(static_cast<size_t>(ranks));
  comm::run_thread_team(
      ranks,
      [&](comm::Comm& comm) {
        const auto file = open_plain(path.path());
        Pipeline pipeline(comm, *file, {});
        const Blocks mine = dealt(comm, kBlock, kBlocks);
        EXPECT_EQ(pipeline.write_all(mine.request(), policy).agreed, ErrorClass::none);
        seen[size_t(comm.rank())] = {pipeline.spent_together().traffic, pipeline.degraded()};
        EXPECT_TRUE(file->close());
      },
      {.nodes = nodes});
  expect_dealt(path.contents(), ranks, kBlock, kBlocks);
  for (const Seen& s : seen) EXPECT_EQ(s.degraded, "");
  return seen;
}

Traffic sum_of(const std::vector<Seen>& seen) {
  Traffic sum;
  for (const Seen& s : seen) sum = sum + s.traffic;
  return sum;
}

// Four ranks on each of two nodes, a writer on each, 8 pages of 16 KiB each; every rank has bytes
// for every page.
TEST(NodeLeaders, ANodeSendsAWriterOneMessageInACycle) {
  const auto seen = write_once(8, 2, two_phase(2, 16384));
  const Traffic all = sum_of(seen);
  EXPECT_EQ(all.messages, 2 * 8) << "(node, writer, cycle)";
  EXPECT_EQ(all.message_bytes, 8 * kBlocks * kBlock / 2) << "half of all is on the other node";
  const Traffic alone = sum_of(write_once(8, 2, two_phase(2, 16384, find_exchange("shm"))));
  EXPECT_EQ(alone.messages, 4 * 2 * 8) << "(rank, writer, cycle)";
  EXPECT_EQ(alone.message_bytes, all.message_bytes);
  EXPECT_EQ(alone.shared_bytes, all.shared_bytes) << "inside a node they do the same";
}

// The number of messages does not follow the number of ranks.
TEST(NodeLeaders, MoreRanksOnANodeSendNoMoreMessages) {
  for (const int ranks : {4, 8, 16, 64}) {
    const int64_t cycle = ranks * kBlocks * kBlock / 2 / 4;  // each writer has 4
    EXPECT_EQ(sum_of(write_once(ranks, 2, two_phase(2, cycle))).messages, 2 * 4) << ranks;
  }
}

// Writer w is led by the rank at place w mod 4 of each node.
TEST(NodeLeaders, WritersAreLedByDifferentRanks) {
  const auto seen = write_once(8, 2, two_phase(8, 4096));
  for (size_t rank = 0; rank < seen.size(); ++rank)
    EXPECT_EQ(seen[rank].traffic.messages, 8) << "8 cycles of one writer, rank " << rank;
}

TEST(NodeLeaders, ABundleThatDoesNotFitTravelsInLoads) {
  // Of 16 KiB pages 8 KiB come from the other node.
  const Exchange fits{.name = "fits", .summary = "", .shares_pages = true, .outbox_bytes = 8192};
  EXPECT_EQ(sum_of(write_once(8, 2, two_phase(2, 16384, &fits))).messages, 2 * 8);
  const Exchange small{.name = "small", .summary = "", .shares_pages = true, .outbox_bytes = 3000};
  EXPECT_EQ(sum_of(write_once(8, 2, two_phase(2, 16384, &small))).messages, 2 * 8 * 3);
}

TEST(NodeLeaders, OneRankOnEachNodeSendsMessagesAsEver) {
  for (const int ranks : {2, 3, 5}) {
    const Traffic by_leaders = sum_of(write_once(ranks, ranks, two_phase(2, 16384)));
    const Traffic by_messages =
        sum_of(write_once(ranks, ranks, two_phase(2, 16384, find_exchange("messages"))));
    EXPECT_EQ(by_leaders.messages, by_messages.messages);
    EXPECT_EQ(by_leaders.message_bytes, by_messages.message_bytes);
  }
}

// --- Every kind of view ---

class RandomViews : public testing::TestWithParam<int> {};  // nodes

void run_random(int ranks, int nodes, const plan::Parameters& parameters, uint64_t seed) {
  Random random(seed);
  const std::vector<RankCase> cases = draw_writers(random, ranks, draw(random, 0, 2) == 0);
  const io::TemporaryFile path;
  fill_with_background(path.path());
  comm::run_thread_team(
      ranks,
      [&](comm::Comm& comm) {
        const auto file = open_plain(path.path());
        Pipeline pipeline(comm, *file, {});
        const RankCase& c = cases[size_t(comm.rank())];
        const WriteRequest request{&c.view,       c.range,        c.memory.data(),
                                   c.memory_type, c.memory_count, ErrorClass::none};
        for (int again = 0; again < 2; ++again) {
          const WriteOutcome out = pipeline.write_all(
              request, {plan::find_algorithm("two_phase"), parameters, nullptr, &kTiny});
          EXPECT_EQ(out.agreed, ErrorClass::none);
          EXPECT_EQ(out.prefix_bytes, c.range.size());
          EXPECT_EQ(pipeline.degraded(), "");
        }
        EXPECT_TRUE(file->close());
      },
      {.nodes = nodes});
  EXPECT_TRUE(path.holds(expectation(cases)));
}

TEST_P(RandomViews, InManyLoadsAndGroupsComeWhereTheyBelong) {
  for (const int ranks : {3, 4, 7, 9})
    for (const int writers : {1, 2, 3, 7})
      for (uint64_t seed = 0; seed < 8; ++seed) {
        SCOPED_TRACE("ranks " + std::to_string(ranks) + ", writers " + std::to_string(writers) +
                     ", seed " + std::to_string(seed));
        run_random(ranks, GetParam(), {writers, seed % 2 == 0 ? 4096 : 16384}, seed * 31 + 1);
        if (HasFailure()) return;
      }
}

INSTANTIATE_TEST_SUITE_P(Nodes, RandomViews, testing::Values(2, 3));

// From call to call the loads become larger and smaller, and messages come between.
TEST(NodeLeaders, MayComeAndGoAndGrowFromCallToCall) {
  const io::TemporaryFile path;
  comm::run_thread_team(
      6,
      [&](comm::Comm& comm) {
        const auto file = open_plain(path.path());
        Pipeline pipeline(comm, *file, {});
        const Blocks mine = dealt(comm, kBlock, kBlocks);
        for (const Pipeline::Policy& p :
             {two_phase(2, 4096), two_phase(3, 8192), two_phase(2, 8192, find_exchange("messages")),
              two_phase(1, 65536), two_phase(6, 4096, &kTiny), two_phase(2, 4096)})
          EXPECT_EQ(pipeline.write_all(mine.request(), p).agreed, ErrorClass::none);
        EXPECT_TRUE(file->close());
      },
      {.nodes = 2});
  expect_dealt(path.contents(), 6, kBlock, kBlocks);
}

// --- What goes wrong ---

// One node's ranks have no memory to share.
class Poor final : public comm::Borrowed {
 public:
  Poor(comm::Comm& owner, bool poor) : Borrowed(owner), owner_(owner), poor_(poor) {}
  Poor(std::unique_ptr<comm::Comm> owned, bool poor) : Poor(*owned, poor) {
    owned_ = std::move(owned);
  }
  Result<std::shared_ptr<comm::SharedSegment>> shared_segment(
      const comm::SegmentShape& shape) override {
    if (poor_) return os_error("posix_fallocate", "the test", ENOSPC);
    return owner_.shared_segment(shape);
  }
  Result<std::unique_ptr<comm::Comm>> split_by_node() override {
    return owner_.split_by_node().map([this](auto&& node) -> std::unique_ptr<comm::Comm> {
      return std::make_unique<Poor>(std::move(node), poor_);
    });
  }

 private:
  std::unique_ptr<comm::Comm> owned_;
  comm::Comm& owner_;
  bool poor_;
};

TEST(NodeLeaders, WithoutMemoryOnOneNodeNobodyHasLeadersAndAllSayWhy) {
  const io::TemporaryFile path;
  std::atomic<int> told = 0;
  comm::run_thread_team(
      6,
      [&](comm::Comm& comm) {
        Poor poor(comm, comm.rank() >= 3);
        const auto file = open_plain(path.path());
        Pipeline pipeline(poor, *file, {});
        const Blocks mine = dealt(comm, kBlock, kBlocks);
        for (int again = 0; again < 2; ++again) {
          const WriteOutcome out = pipeline.write_all(mine.request(), two_phase(2, 16384));
          EXPECT_EQ(out.agreed, ErrorClass::none);
          if (pipeline.degraded().find("nodes do not send together") != std::string::npos) ++told;
        }
        EXPECT_TRUE(file->close());
      },
      {.nodes = 2});
  EXPECT_EQ(told, 12) << "six ranks, twice";
  expect_dealt(path.contents(), 6, kBlock, kBlocks);
}

// The leader of the other node's writer brings nothing, and leads all the same.
TEST(NodeLeaders, ALeaderWithBadArgumentsStillSendsWhatOthersBring) {
  for (int bad = 0; bad < 6; ++bad) {
    const io::TemporaryFile path;
    comm::run_thread_team(6,
                          [&](comm::Comm& comm) {
                            const auto file = open_plain(path.path());
                            Pipeline pipeline(comm, *file, {});
                            const Blocks mine = dealt(comm, kBlock, kBlocks);
                            WriteRequest request = mine.request();
                            if (comm.rank() == bad) request.argument_error = ErrorClass::argument;
                            const WriteOutcome out =
                                pipeline.write_all(request, two_phase(2, 16384));
                            EXPECT_EQ(out.agreed, ErrorClass::argument);
                            EXPECT_EQ(out.prefix_bytes, comm.rank() == bad ? 0 : kBlock * kBlocks);
                            EXPECT_TRUE(file->close());
                          },
                          {.nodes = 2});
    const auto file = path.contents();
    for (size_t i = 0; i < file.size(); ++i) {
      const int rank = int(int64_t(i) / kBlock % 6);
      ASSERT_EQ(file[i], rank == bad ? std::byte{0} : value_of(rank)) << "byte " << i;
    }
  }
}

// A writer that gets no memory for a page.
class NoLease final : public io::ForwardingFile {
 public:
  NoLease(std::unique_ptr<io::MechanismFile> inner, int nth)
      : ForwardingFile(std::move(inner)), nth_(nth) {}
  Result<io::Lease> lease(Extent where) override {
    if (++leases_ == nth_) return os_error("lease", "the test", ENOMEM);
    return inner().lease(where);
  }

 private:
  int nth_, leases_ = 0;
};

TEST(NodeLeaders, APageWithoutMemoryIsDroppedAndTheRestArrives) {
  for (const Exchange* exchange : {node_leaders(), &kTiny}) {
    const io::TemporaryFile path;
    std::atomic<int64_t> written = 0;
    comm::run_thread_team(6,
                          [&](comm::Comm& comm) {
                            NoLease file(open_plain(path.path()), comm.rank() == 3 ? 2 : 0);
                            Pipeline pipeline(comm, file, {});
                            const Blocks mine = dealt(comm, kBlock, kBlocks);
                            const WriteOutcome out =
                                pipeline.write_all(mine.request(), two_phase(2, 16384, exchange));
                            EXPECT_EQ(out.agreed, ErrorClass::no_memory);
                            EXPECT_LT(out.prefix_bytes, kBlock * kBlocks);
                            written += out.written_bytes;
                            EXPECT_TRUE(file.close());
                          },
                          {.nodes = 2});
    EXPECT_EQ(written, 6 * kBlock * kBlocks - 16384);
  }
}

}  // namespace
}  // namespace penstock::exec::node_leaders_test
