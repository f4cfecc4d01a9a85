// What a collective write costs each rank, on 2 to 64 ranks: copies of a byte, messages, metadata,
// collective calls, system calls. tests/mpi/workers.cpp counts the same on MPI ranks.
#include "exec/counts.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "comm/thread_comm.hpp"
#include "io/temporary_file.hpp"

namespace {

thread_local int64_t system_calls = 0;  // of this rank
std::atomic<int64_t> all_system_calls = 0;

}  // namespace

// Instead of the C library's.
extern "C" ssize_t pwrite(int fd, const void* bytes, size_t n, off_t offset) {
  ++system_calls;
  ++all_system_calls;
  return ::syscall(SYS_pwrite64, fd, bytes, n, offset);
}

namespace penstock::exec::counts_test {
namespace {

constexpr int kCalls = 3;

struct Case {
  const plan::Algorithm* algorithm;
  const char* exchange;
  int ranks, nodes;
  int writers = 1;
  bool holes = false;
};

// Where a thread writes for its rank, the rank's own calls say nothing; all together still do.
Counted count(const Case& c, const Pipeline& pipeline, const CommCounts& comm) {
  const Traffic& traffic = pipeline.spent_together().traffic;
  return {traffic, comm, c.algorithm->writes_behind ? traffic.writes : system_calls};
}

void expect_none(const std::vector<std::string>& differences, int rank, int call) {
  for (const std::string& line : differences)
    ADD_FAILURE() << "rank " << rank << ", call " << call << ": " << line;
}

void write_counted(comm::Comm& comm, const Case& c, const plan::Parameters& parameters,
                   const Costs& costs, const std::string& path) {
  SCOPED_TRACE(std::to_string(c.writers) + " writers" + (c.holes ? ", holes" : ""));
  CommCounts counts;
  CountingComm counting(comm, counts);
  auto file = io::find_mechanism("pwrite")->open({path}).value();
  Pipeline pipeline(counting, *file, {});
  const plan::Part mine = Deal{c.ranks, c.holes}.of(comm.rank());
  const std::vector<std::byte> data(size_t(mine.own.size()), std::byte(comm.rank() + 1));
  const WriteRequest request{&mine.view,      mine.own,
                             data.data(),     layout::LoopTree::bytes(1),
                             mine.own.size(), ErrorClass::none};
  const Pipeline::Policy policy{c.algorithm, parameters, nullptr, find_exchange(c.exchange)};
  for (int call = 0; call < kCalls; ++call) {
    const Counted before = count(c, pipeline, counts);
    EXPECT_EQ(pipeline.write_all(request, policy).agreed, ErrorClass::none);
    expect_none(differences(costs.of(comm.rank()), count(c, pipeline, counts) - before, call > 0),
                comm.rank(), call);
  }
  EXPECT_TRUE(file->close());
}

void check(const Case& c) {
  const plan::Parameters parameters = plan::taken_by(*c.algorithm, {c.writers, kCountedCycle});
  const Exchange& exchange = *find_exchange(c.exchange);
  const plan::Team team{c.ranks, c.nodes, std::max(1, int(std::thread::hardware_concurrency()))};
  std::vector<int> nodes;
  for (int rank = 0; rank < c.ranks; ++rank) nodes.push_back(rank * c.nodes / c.ranks);
  const Costs costs(*c.algorithm, parameters, team, {c.ranks, c.holes}, nodes, exchange);

  // Each byte goes one way, once; and in a node through no message, where pages are shared.
  Cost all;
  for (int rank = 0; rank < c.ranks; ++rank) {
    const Cost& cost = costs.of(rank);
    all.own_bytes += cost.own_bytes;
    all.shared_bytes += cost.shared_bytes;
    all.data.bytes += cost.data.bytes;
    all.writes += cost.writes;
    // However many ranks there are: the bytes are as many, and so are the cycles.
    EXPECT_LE(cost.data.messages, 2 * c.writers * (kCountedBytes / kCountedCycle / c.writers + 1));
  }
  EXPECT_EQ(all.own_bytes + all.shared_bytes + all.data.bytes, kCountedBytes);
  if (exchange.shares_pages && c.nodes == 1 && !c.algorithm->scatters) {
    EXPECT_EQ(all.data.bytes, 0);
  }
  if (exchange.outbox_bytes > 0 && !c.algorithm->scatters) {  // of a node for a page one, at most
    EXPECT_LE(all.data.messages, (c.nodes - 1) * c.writers * costs.of(0).cycles);
  }

  const io::TemporaryFile path;
  all_system_calls = 0;
  comm::run_thread_team(
      c.ranks, [&](comm::Comm& comm) { write_counted(comm, c, parameters, costs, path.path()); },
      {.nodes = c.nodes});
  EXPECT_EQ(all_system_calls, kCalls * all.writes);
}

class Counts : public testing::TestWithParam<Case> {};

TEST_P(Counts, OfACallAreThoseOfItsPlan) {
  Case c = GetParam();
  for (const int writers : {1, 2, 8})
    for (const bool holes : {false, true}) {
      c.writers = writers;
      c.holes = holes;
      if (writers <= c.ranks) check(c);
    }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const plan::Algorithm* a : plan::algorithms()) {
    if (!a->exchanges) continue;
    for (const char* exchange : {"messages", "shm", "node_leaders"})
      for (const auto& [ranks, nodes] : std::vector<std::pair<int, int>>{
               {2, 1}, {2, 2}, {4, 1}, {8, 1}, {8, 2}, {16, 1}, {16, 4}, {64, 1}, {64, 4}})
        all.push_back({a, exchange, ranks, nodes});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Every, Counts, testing::ValuesIn(cases()), [](const auto& tested) {
  const Case& c = tested.param;
  return std::string(c.algorithm->name) + "_" + c.exchange + "_" + std::to_string(c.ranks) +
         "ranks_" + std::to_string(c.nodes) + "nodes";
});

}  // namespace
}  // namespace penstock::exec::counts_test
