// For which calls blocks of the file are reserved before any rank writes, and by whom: of one rank
// for all where a collective call leaves no gap.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include "base/units.hpp"
#include "comm/thread_comm.hpp"
#include "exec/pipeline.hpp"
#include "io/forwarding_file.hpp"
#include "io/temporary_file.hpp"

namespace penstock::exec::reserve_test {
namespace {

using layout::LoopTree;

// What was asked for, by all ranks' files.
struct Asked {
  std::mutex mutex;
  std::vector<Extent> of;
};

class Asking final : public io::ForwardingFile {
 public:
  Asking(std::unique_ptr<io::MechanismFile> inner, Asked& asked)
      : ForwardingFile(std::move(inner)), asked_(asked) {}
  void reserve(Extent where) override {
    const std::lock_guard lock(asked_.mutex);
    asked_.of.push_back(where);
  }

 private:
  Asked& asked_;
};

// Blocks of 64 KiB, of each rank in turn; the file's `step`-th is every rank's `ranks`-th.
constexpr int64_t kBlock = 64 * kKiB;
constexpr int kRanks = 3;

struct Job {
  int64_t step = kRanks;                          // more: there are gaps
  std::array<int64_t, kRanks> first = {0, 1, 2};  // block of each rank
  int64_t bytes = 32 * kBlock;
  const char* algorithm = "two_phase";
  bool alone = false;
};

std::vector<Extent> asked_by(const Job& job) {
  const io::TemporaryFile file;
  Asked asked;
  comm::run_thread_team(kRanks, [&](comm::Comm& comm) {
    const auto type = *LoopTree::resized(LoopTree::bytes(kBlock), 0, job.step * kBlock);
    const auto view = *layout::FileView::make(job.first[size_t(comm.rank())] * kBlock, 1, type);
    const std::vector<std::byte> memory(size_t(job.bytes), std::byte(comm.rank() + 1));
    Asking mine(io::find_mechanism("pwrite")->open({.path = file.path()}).value(), asked);
    Pipeline pipeline(comm, mine, {});
    const WriteRequest request{&view, {0, job.bytes}, memory.data(), LoopTree::bytes(1), job.bytes};
    const Pipeline::Policy policy{.algorithm = plan::find_algorithm(job.algorithm)};
    const WriteOutcome outcome =
        job.alone ? pipeline.write_alone(request) : pipeline.write_all(request, policy);
    EXPECT_EQ(outcome.prefix_bytes, job.bytes);
    EXPECT_TRUE(mine.close());
  });
  return asked.of;
}

TEST(Reserve, ACallWithoutGapsIsReservedWholeAndOnce) {
  const std::vector<Extent> all = {{0, kRanks * 32 * kBlock}};
  for (const char* algorithm : {"two_phase", "cyclic", "dynamic_segmentation"})
    EXPECT_EQ(asked_by({.algorithm = algorithm}), all) << algorithm;
}

TEST(Reserve, WhatLeavesGapsIsNot) {
  EXPECT_EQ(asked_by({.step = kRanks + 1}), std::vector<Extent>{});
}

TEST(Reserve, BytesThatTwoRanksWriteFillNoGap) {
  EXPECT_EQ(asked_by({.step = 1, .first = {0, 0, 64}}), std::vector<Extent>{});
  EXPECT_EQ(asked_by({.step = 1, .first = {0, 0, 48}}), std::vector<Extent>{});
}

TEST(Reserve, ARankAloneReservesOnePieceOfTheFileThatItWritesInParts) {
  std::vector<Extent> asked = asked_by({.step = 1, .bytes = 48 * kBlock, .alone = true});
  std::ranges::sort(asked, {}, &Extent::begin);
  std::vector<Extent> expected;
  for (int64_t r = 0; r < kRanks; ++r) expected.push_back({r * kBlock, (r + 48) * kBlock});
  EXPECT_EQ(asked, expected);
}

TEST(Reserve, ARankAloneReservesNoGapsAndNothingShort) {
  EXPECT_EQ(asked_by({.alone = true}), std::vector<Extent>{});
  EXPECT_EQ(asked_by({.step = 1, .bytes = 16 * kBlock, .alone = true}), std::vector<Extent>{});
}

}  // namespace
}  // namespace penstock::exec::reserve_test
