// What the segmentation algorithms add to the pipeline: pages that are lists of extents, cuts that
// travel, and what is counted of both. That bytes land where they belong, and what is told after
// faults, conformance_test.cpp and truth_test.cpp check of every algorithm.
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "comm/thread_comm.hpp"
#include "exec/blocks.hpp"
#include "exec/pipeline.hpp"
#include "io/forwarding_file.hpp"
#include "io/temporary_file.hpp"

namespace penstock::exec::segmentation_test {
namespace {

constexpr int64_t kBlock = 4096;

// A file that notes how much memory its pages have, and has none for a page on demand.
class Frugal final : public io::ForwardingFile {
 public:
  explicit Frugal(const std::string& path, int refused = -1)
      : ForwardingFile(io::find_mechanism("pwrite")->open({path}).value()), refused_(refused) {}

  Result<io::Lease> lease(Extent where) override {
    if (leases_++ == refused_) return fail(ErrorClass::no_memory, "lease", "refused by the test");
    auto lease = inner().lease(where);
    if (lease) most_bytes = std::max(most_bytes, int64_t(lease->memory.size()));
    return lease;
  }
  void submit(io::Lease lease, std::span<const Extent> dirty) override {
    packed = packed || lease.packed;
    inner().submit(lease, dirty);
  }
  Result<void> use_memory(std::span<const std::span<std::byte>> buffers) override {
    return MechanismFile::use_memory(buffers);  // which refuses it
  }

  int64_t most_bytes = 0;
  bool packed = false;

 private:
  int refused_;
  int leases_ = 0;
};

Pipeline::Policy policy(const char* algorithm, int writers, int64_t cycle_bytes,
                        const char* exchange = "messages") {
  return {
      plan::find_algorithm(algorithm), {writers, cycle_bytes}, nullptr, find_exchange(exchange)};
}

const char* const kAlgorithms[] = {"dynamic_segmentation", "static_segmentation"};

struct Way {
  const char* algorithm;
  int ranks, writers;
};

class Segmentation : public testing::TestWithParam<Way> {};

// 64 KiB of each rank in cycles of 64 KiB for each group, whatever the group's extent.
TEST_P(Segmentation, WritesOnceWhatItsGroupsBringInBuffersOfACycle) {
  const Way way = GetParam();
  constexpr int64_t kBlocks = 16, kCycle = 65536;
  const io::TemporaryFile path;
  std::atomic<int64_t> written = 0, bad = 0;
  std::atomic<bool> packed = false;
  comm::run_thread_team(way.ranks, [&](comm::Comm& comm) {
    Frugal file(path.path());
    Pipeline pipeline(comm, file, {});
    const Blocks mine = dealt(comm, kBlock, kBlocks);
    const WriteOutcome out =
        pipeline.write_all(mine.request(), policy(way.algorithm, way.writers, kCycle));
    if (out.agreed != ErrorClass::none || out.prefix_bytes != kBlocks * kBlock) ++bad;
    written += out.written_bytes;
    EXPECT_LE(file.most_bytes, kCycle + kBlock);
    if (file.packed) packed = true;
    EXPECT_TRUE(file.close());
  });
  EXPECT_EQ(bad, 0);
  EXPECT_EQ(written, kBlocks * kBlock * way.ranks) << "no byte twice";
  // A cycle of a group that is not one stretch of the file.
  const bool interleaves =
      way.writers > 1 && way.ranks > 2 && way.ranks / way.writers * kBlock < kCycle / 2;
  if (interleaves && std::string_view(way.algorithm) == "dynamic_segmentation")
    EXPECT_TRUE(packed) << "or the test shows nothing";
  expect_dealt(path.contents(), way.ranks, kBlock, kBlocks);
}

std::vector<Way> ways() {
  std::vector<Way> all;
  for (const char* a : kAlgorithms)
    for (const int ranks : {1, 2, 3, 7, 16, 64})
      for (const int writers : {1, 2, 3, 64}) all.push_back({a, ranks, std::min(writers, ranks)});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Every, Segmentation, testing::ValuesIn(ways()), [](const auto& tested) {
  const Way& w = tested.param;
  return std::string(w.algorithm) + "_" + std::to_string(w.ranks) + "_w" +
         std::to_string(w.writers) + "_" + std::to_string(tested.index);
});

// Ranks 0 to 3 send to 0, and 4 to 7 to 4, whose own bytes travel nowhere.
TEST(SegmentationCounts, ARankSendsToOneWriterOnceACycleAndHearsOfItsCutsOnce) {
  constexpr int64_t kBlocks = 64;  // 256 KiB of each rank, 64 KiB of it in each cycle of its group
  for (const char* algorithm : kAlgorithms) {
    const io::TemporaryFile path;
    const bool has_cuts = std::string_view(algorithm) == "dynamic_segmentation";
    comm::run_thread_team(8, [&](comm::Comm& comm) {
      Frugal file(path.path());
      Pipeline pipeline(comm, file, {});
      const Blocks mine = dealt(comm, kBlock, kBlocks);
      for (int64_t calls = 1; calls <= 3; ++calls) {
        (void)pipeline.write_all(mine.request(), policy(algorithm, 2, 262144));
        const Traffic& t = pipeline.spent_together().traffic;
        const bool writes = comm.rank() % 4 == 0;
        const int64_t data = writes ? 0 : 4, cuts = writes && has_cuts ? 3 : 0;
        EXPECT_EQ(t.messages, calls * (data + cuts)) << algorithm << ", rank " << comm.rank();
        EXPECT_EQ(t.cycles, calls * 4);
        EXPECT_EQ(t.descriptions, 0) << "who writes brings the same";
      }
      EXPECT_TRUE(file.close());
    });
    expect_dealt(path.contents(), 8, kBlock, kBlocks);
  }
}

// Two ranks of a group are neighbours in the file: theirs is one write of two blocks.
TEST(SegmentationCounts, BytesThatTouchLeaveInOneWrite) {
  constexpr int64_t kBlocks = 32;
  for (const char* algorithm : kAlgorithms) {
    const io::TemporaryFile path;
    comm::run_thread_team(4, [&](comm::Comm& comm) {
      Frugal file(path.path());
      Pipeline pipeline(comm, file, {});
      const Blocks mine = dealt(comm, kBlock, kBlocks);
      (void)pipeline.write_all(mine.request(), policy(algorithm, 2, 65536));
      EXPECT_EQ(pipeline.spent_together().traffic.writes, comm.rank() % 2 == 0 ? kBlocks : 0);
      EXPECT_TRUE(file.close());
    });
    expect_dealt(path.contents(), 4, kBlock, kBlocks);
  }
}

TEST(SegmentationFaults, APageWithoutMemoryIsToldToAllAndOnlyItsGroupLacksBytes) {
  constexpr int64_t kBlocks = 64;  // 128 KiB of each rank in each of two cycles
  for (const char* algorithm : kAlgorithms) {
    const io::TemporaryFile path;
    comm::run_thread_team(4, [&](comm::Comm& comm) {
      Frugal file(path.path(), comm.rank() == 2 ? 1 : -1);  // the second page of the second group
      Pipeline pipeline(comm, file, {});
      const Blocks mine = dealt(comm, kBlock, kBlocks);
      const WriteOutcome out = pipeline.write_all(mine.request(), policy(algorithm, 2, 262144));
      EXPECT_EQ(out.agreed, ErrorClass::no_memory);
      EXPECT_EQ(out.mine.has_value(), comm.rank() == 2);
      EXPECT_EQ(out.prefix_bytes, comm.rank() < 2 ? kBlocks * kBlock : kBlocks * kBlock / 2)
          << algorithm << ", rank " << comm.rank();
      EXPECT_TRUE(file.close());
    });
  }
}

TEST(SegmentationSharing, PagesAreFilledByMessagesAndThatIsSaid) {
  for (const char* algorithm : kAlgorithms) {
    const io::TemporaryFile path;
    comm::run_thread_team(4, [&](comm::Comm& comm) {
      Frugal file(path.path());
      Pipeline pipeline(comm, file, {});
      const Blocks mine = dealt(comm, kBlock, 8);
      const WriteOutcome out =
          pipeline.write_all(mine.request(), policy(algorithm, 2, 16384, "shm"));
      EXPECT_EQ(out.agreed, ErrorClass::none);
      EXPECT_NE(pipeline.degraded().find("scattered"), std::string::npos);
      EXPECT_EQ(pipeline.spent_together().traffic.shared_bytes, 0);
      EXPECT_TRUE(file.close());
    });
    expect_dealt(path.contents(), 4, kBlock, 8);
  }
}

}  // namespace
}  // namespace penstock::exec::segmentation_test
