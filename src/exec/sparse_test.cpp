// Calls that span far more of the file than they bring: what they cost follows their bytes and
// blocks. Counted in cycles that a rank turns to and in writes, over every algorithm and exchange.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "comm/thread_comm.hpp"
#include "exec/gathering.hpp"
#include "exec/page_account.hpp"
#include "exec/pipeline.hpp"
#include "exec/read_pipeline.hpp"
#include "io/faulty.hpp"
#include "io/periodic_sync.hpp"
#include "io/temporary_file.hpp"

namespace penstock::exec::sparse_test {
namespace {

constexpr int64_t kBlock = int64_t{64} << 10;
constexpr int64_t kCycle = kBlock;
constexpr Off kFar = Off{1} << 36;  // 2^20 cycles
constexpr int kCalls = 3;

// Where the blocks of a rank lie: `blocks` of them, kFar apart; and how far ranks are apart.
struct Spread {
  int64_t blocks;
  Off between_ranks;
  const char* name;
};
constexpr Spread kSpreads[] = {
    {1, kFar, "each rank elsewhere"},
    {1, kFar + 4096 - 8, "each rank elsewhere, at any byte"},
    {2, kBlock, "ranks beside each other in two places"},
    {2, 3 * kFar, "each rank in two places of its own"},
};

struct Case {
  const plan::Algorithm* algorithm;
  const Exchange* exchange;
  int ranks, nodes;
};

std::byte content(int rank, int64_t block) { return std::byte(1 + 16 * rank + int(block)); }

std::vector<std::byte> data_of(const Spread& spread, int rank) {
  std::vector<std::byte> data;
  for (int64_t block = 0; block < spread.blocks; ++block)
    data.insert(data.end(), size_t(kBlock), content(rank, block));
  return data;
}

layout::FileView view_of(const Spread& spread, int rank) {
  const auto blocks =
      layout::LoopTree::strided(spread.blocks, kBlock, kFar, layout::LoopTree::bytes(1));
  return *layout::FileView::make(spread.between_ranks * rank, 1, *blocks);
}

// Twice what lies in whole cycles: a block may begin and end within one.
int64_t bound(const Case& c, const Spread& spread) {
  const int64_t blocks = c.ranks * spread.blocks;
  return 2 * (blocks * kBlock / kCycle + blocks);
}

Pipeline::Policy policy_of(const Case& c) {
  return {c.algorithm, plan::taken_by(*c.algorithm, {2, kCycle, kCycle}), nullptr, c.exchange};
}

void write_as(comm::Comm& comm, const Case& c, const Spread& spread, const std::string& path) {
  auto file = io::find_mechanism("pwrite")->open({path}).value();
  Pipeline pipeline(comm, *file, {});
  const layout::FileView view = view_of(spread, comm.rank());
  const std::vector<std::byte> data = data_of(spread, comm.rank());
  const auto bytes = int64_t(data.size());
  const WriteRequest request{&view, {0, bytes},      data.data(), layout::LoopTree::bytes(1),
                             bytes, ErrorClass::none};
  for (int call = 0; call < kCalls; ++call) {
    const Traffic before = pipeline.spent_together().traffic;
    const WriteOutcome outcome = pipeline.write_all(request, policy_of(c));
    EXPECT_EQ(outcome.agreed, ErrorClass::none);
    EXPECT_EQ(outcome.prefix_bytes, bytes);
    const Traffic& after = pipeline.spent_together().traffic;
    EXPECT_LE(after.cycles - before.cycles, bound(c, spread)) << "rank " << comm.rank();
    EXPECT_LE(after.writes - before.writes, bound(c, spread)) << "rank " << comm.rank();
  }
  EXPECT_TRUE(file->close());
}

void read_as(comm::Comm& comm, const Case& c, const Spread& spread, const std::string& path) {
  auto file = io::open_for_reading(path).value();
  ReadPipeline pipeline(comm, *file, {});
  const layout::FileView view = view_of(spread, comm.rank());
  const std::vector<std::byte> written = data_of(spread, comm.rank());
  const auto bytes = int64_t(written.size());
  for (int call = 0; call < kCalls; ++call) {
    const int64_t before = pipeline.spent().cycles;
    std::vector<std::byte> memory(written.size());
    const ReadOutcome outcome = pipeline.read_all(
        {&view, {0, bytes}, memory.data(), layout::LoopTree::bytes(1), bytes, ErrorClass::none},
        policy_of(c));
    EXPECT_EQ(outcome.agreed, ErrorClass::none);
    EXPECT_EQ(outcome.prefix_bytes, bytes);
    EXPECT_EQ(memory, written) << "rank " << comm.rank();
    EXPECT_LE(pipeline.spent().cycles - before, bound(c, spread)) << "rank " << comm.rank();
  }
}

void expect_in_file(const Case& c, const Spread& spread, const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  std::vector<std::byte> found(static_cast<size_t>(kBlock));
  for (int rank = 0; rank < c.ranks; ++rank)
    for (int64_t block = 0; block < spread.blocks; ++block) {
      const Off at = spread.between_ranks * rank + block * kFar;
      EXPECT_EQ(::pread(fd, found.data(), found.size(), at), kBlock);
      EXPECT_EQ(found, std::vector<std::byte>(found.size(), content(rank, block)))
          << "rank " << rank << ", block " << block;
    }
  ::close(fd);
}

class Sparse : public testing::TestWithParam<Case> {};

TEST_P(Sparse, CallsCostWhatTheyBringAndNotWhatTheySpan) {
  const Case& c = GetParam();
  for (const Spread& spread : kSpreads) {
    SCOPED_TRACE(spread.name);
    const io::TemporaryFile path;
    comm::run_thread_team(c.ranks,
                          [&](comm::Comm& comm) { write_as(comm, c, spread, path.path()); },
                          {.nodes = c.nodes});
    expect_in_file(c, spread, path.path());
    if (c.exchange != find_exchange("messages")) continue;  // reads know no other
    comm::run_thread_team(c.ranks, [&](comm::Comm& comm) { read_as(comm, c, spread, path.path()); },
                          {.nodes = c.nodes});
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const plan::Algorithm* a : plan::algorithms()) {
    if (!a->exchanges) continue;
    for (const char* exchange : {"messages", "shm", "node_leaders"})
      for (const int ranks : {2, 4})
        for (const int nodes : {1, 2}) all.push_back({a, find_exchange(exchange), ranks, nodes});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Every, Sparse, testing::ValuesIn(cases()), [](const auto& tested) {
  const Case& c = tested.param;
  return std::string(c.algorithm->name) + "_" + std::string(c.exchange->name) + "_" +
         std::to_string(c.ranks) + "ranks_" + std::to_string(c.nodes) + "nodes";
});

// The view through which a program writes one extent has bytes for its blocks.
TEST(CommonGranule, OfOneExtentFollowsItsEndsAlone) {
  const layout::FileView view = *layout::FileView::make(0, 1, layout::LoopTree::bytes(1));
  const plan::Summary one = plan::summarise(view, {8192, 12288}, 0);
  EXPECT_EQ(common_granule(int64_t{1} << 18, view, one), 4096);
  const auto tile = *layout::LoopTree::resized(layout::LoopTree::bytes(8), 0, 4096);
  const layout::FileView blocks = *layout::FileView::make(0, 1, tile);
  EXPECT_EQ(common_granule(int64_t{1} << 18, blocks, plan::summarise(blocks, {0, 16}, 0)), 8);
}

// A full disk fails all that follows; ranks tell each other every fault.
TEST(PageAccount, JoinsFaultsOverCyclesThatHaveNoBytes) {
  Spent spent;
  PageAccount account(spent, nullptr);
  const Error full{ErrorClass::no_space, 28, "pwrite", "full"};
  account.note_fault(3, 0, {full, 5});
  account.note_fault(900, kFar, {full, kFar});
  ASSERT_EQ(account.faults().size(), 1u);
  EXPECT_EQ(account.faults()[0].begin, 3);
  EXPECT_EQ(account.faults()[0].end, 901);
  account.settle(901, {2 * kFar, 2 * kFar + 1}, {}, std::nullopt);
  account.note_fault(902, 3 * kFar, {full, 3 * kFar});
  EXPECT_EQ(account.faults().size(), 2u) << "a page between them was written";
}

// Where pages begin with a hole the first byte that is wanted is what counts.
TEST(PageAccount, JoinsFaultsOfPagesThatBeginWithAHole) {
  Spent spent;
  PageAccount account(spent, nullptr);
  const Error full{ErrorClass::no_space, 28, "pwrite", "full"};
  for (int cycle = 0; cycle < 3; ++cycle) {
    const Off begin = Off{100} * cycle;
    const Extent dirty[] = {{begin + 10, begin + 20}, {begin + 30, begin + 40}};
    account.settle(cycle, {begin, begin + 100}, dirty, io::Fault{full, begin + 10});
  }
  ASSERT_EQ(account.faults().size(), 1u);
  EXPECT_EQ(account.faults()[0].first_missing, 10);
  const Extent dirty[] = {{310, 320}, {330, 340}};
  account.settle(3, {300, 400}, dirty, io::Fault{full, 330});
  EXPECT_EQ(account.faults().size(), 2u) << "its first bytes are in the file";
  EXPECT_EQ(account.written_bytes(), 10);
}

// Also where the next page is always on its way by then.
TEST(PageAccount, JoinsSyncsThatFailOneAfterTheOther) {
  for (const int ahead : {0, 1}) {
    const io::TemporaryFile path;
    io::FaultyFile file(io::find_mechanism("pwrite")->open({.path = path.path()}).value(),
                        {.sync_errno = EIO});
    io::PeriodicSync sync(file, 10, nullptr);
    Spent spent;
    PageAccount account(spent, &sync);
    for (int cycle = 0; cycle < 4; ++cycle) {
      const Extent dirty[] = {{100 * cycle + 5, 100 * cycle + 15}};
      EXPECT_FALSE(account.settle(cycle, {100 * cycle, 100 * cycle + 100}, dirty, std::nullopt));
      account.lose_through(cycle + ahead);
    }
    ASSERT_EQ(account.faults().size(), 1u);
    EXPECT_EQ(account.faults()[0].end, 4);
    EXPECT_EQ(account.faults()[0].first_missing, 5);
    EXPECT_EQ(account.written_bytes(), 0);
  }
}

}  // namespace
}  // namespace penstock::exec::sparse_test
