// Scheduled individual writes: how many ranks write at a time, in which order, and that nobody
// hangs (ctest's time limit).
#include "exec/turns.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <cerrno>
#include <mutex>

#include "comm/thread_comm.hpp"
#include "exec/pipeline.hpp"
#include "io/faulty.hpp"
#include "io/recording_file.hpp"
#include "io/temporary_file.hpp"

namespace penstock::exec::turns_test {
namespace {

constexpr int64_t kCycle = 4096;

// Of all ranks' writes.
struct Watch {
  std::atomic<int> inside = 0, most = 0;
  std::mutex mutex;
  std::vector<Off> order;
};

// Remembers who was inside write(), for long enough to meet others.
class Watched final : public io::RecordingFile {
 public:
  Watched(std::unique_ptr<io::MechanismFile> inner, io::SyncRecord& record, Watch& watch)
      : RecordingFile(std::move(inner), record), watch_(watch) {}

  std::optional<io::Fault> write(std::span<const std::byte> bytes, Off offset) override {
    const int inside = ++watch_.inside;
    for (int most = watch_.most; most < inside && !watch_.most.compare_exchange_weak(most, inside);)
      ;
    {
      const std::lock_guard lock(watch_.mutex);
      watch_.order.push_back(offset);
    }
    for (int i = 0; i < 20; ++i) ::sched_yield();
    auto fault = RecordingFile::write(bytes, offset);
    --watch_.inside;
    return fault;
  }

 private:
  Watch& watch_;
};

struct Outcome {
  WriteOutcome outcome;
  Traffic traffic;
};

// Rank r writes cycles[r] full cycles, all ranks' blocks dealt in turn.
std::vector<Outcome> run(const std::vector<int64_t>& cycles, const plan::Parameters& parameters,
                         Watch& watch, const std::vector<io::FaultPlan>& faults = {},
                         int bad_rank = -1) {
  const io::TemporaryFile path;
  const int ranks = int(cycles.size());
  std::vector<Outcome> all(cycles.size());
  comm::run_thread_team(ranks, [&](comm::Comm& comm) {
    const auto rank = size_t(comm.rank());
    io::SyncRecord record;
    auto faulty =
        std::make_unique<io::FaultyFile>(io::find_mechanism("pwrite")->open({path.path()}).value(),
                                         faults.empty() ? io::FaultPlan{} : faults[rank]);
    Watched file(std::move(faulty), record, watch);
    Pipeline pipeline(comm, file, {});
    const auto view = *layout::FileView::make(
        kCycle * comm.rank(), 1,
        *layout::LoopTree::resized(layout::LoopTree::bytes(kCycle), 0, kCycle * ranks));
    const std::vector<std::byte> data(size_t(cycles[rank] * kCycle), std::byte(rank + 1));
    const WriteRequest request{&view,
                               {0, int64_t(data.size())},
                               data.data(),
                               layout::LoopTree::bytes(1),
                               int64_t(data.size()),
                               comm.rank() == bad_rank ? ErrorClass::argument : ErrorClass::none};
    all[rank].outcome =
        pipeline.write_all(request, {plan::find_algorithm("individual"), parameters, nullptr});
    all[rank].traffic = pipeline.spent_together().traffic;
    EXPECT_TRUE(file.close());
  });
  return all;
}

Traffic total(const std::vector<Outcome>& all) {
  Traffic sum;
  for (const Outcome& o : all) sum = sum + o.traffic;
  return sum;
}

plan::Parameters at_once(int ranks) { return {0, kCycle, 0, 0, ranks}; }

TEST(Turns, NoMoreRanksWriteAtATimeThanAsked) {
  for (const int ranks : {2, 3, 5, 8})
    for (int k = 1; k < ranks; ++k) {
      Watch watch;
      const auto all = run(std::vector<int64_t>(size_t(ranks), 6), at_once(k), watch);
      EXPECT_LE(watch.most, k) << ranks << " ranks";
      EXPECT_EQ(watch.order.size(), size_t(ranks) * 6);
      EXPECT_EQ(total(all).messages, ranks * 6 - k) << "one for each turn that another waits for";
      EXPECT_EQ(total(all).message_bytes, 0);
      EXPECT_EQ(total(all).cycles, ranks * 6);
      for (const Outcome& o : all) EXPECT_EQ(o.outcome.prefix_bytes, 6 * kCycle);
    }
}

TEST(Turns, OneAtATimeWritesInRankOrderRoundAfterRound) {
  Watch watch;
  run({4, 4, 4}, at_once(1), watch);
  ASSERT_EQ(watch.order.size(), 12u);
  for (size_t i = 0; i < watch.order.size(); ++i) EXPECT_EQ(watch.order[i], Off(i) * kCycle);
}

TEST(Turns, ARankWithLittleOrNothingLetsTheOthersOn) {
  for (const int k : {1, 2, 3}) {
    Watch watch;
    const std::vector<int64_t> cycles = {0, 7, 1, 0, 3};
    const auto all = run(cycles, at_once(k), watch);
    for (size_t r = 0; r < cycles.size(); ++r) {
      EXPECT_EQ(all[r].outcome.agreed, ErrorClass::none);
      EXPECT_EQ(all[r].outcome.prefix_bytes, cycles[r] * kCycle);
    }
    EXPECT_LE(watch.most, k);
  }
}

TEST(Turns, AFullDiskOrBadArgumentsStopNobodyElseAndAllAreTold) {
  std::vector<io::FaultPlan> faults(4);
  faults[1] = {.nth_write = 3, .bytes_before_fault = 10, .write_errno = ENOSPC};
  Watch watch;
  const auto all = run({5, 5, 5, 5}, at_once(2), watch, faults, 3);
  for (const Outcome& o : all) EXPECT_EQ(o.outcome.agreed, all[0].outcome.agreed);
  EXPECT_NE(all[0].outcome.agreed, ErrorClass::none);
  EXPECT_EQ(all[0].outcome.prefix_bytes, 5 * kCycle);
  EXPECT_EQ(all[1].outcome.prefix_bytes, 2 * kCycle + 10);
  EXPECT_EQ(all[1].outcome.mine->error_class, ErrorClass::no_space);
  EXPECT_EQ(all[2].outcome.prefix_bytes, 5 * kCycle);
  EXPECT_EQ(all[3].outcome.prefix_bytes, 0);
  EXPECT_EQ(all[3].outcome.mine->error_class, ErrorClass::argument);
}

TEST(Turns, AsManyAsThereAreRanksNeedNoMessages) {
  for (const int k : {0, 3, 100}) {
    Watch watch;
    EXPECT_EQ(total(run({2, 2, 2}, at_once(k), watch)).messages, 0) << k;
  }
}

TEST(Turns, WithoutACycleEachRanksTurnIsADefaultCycle) {
  Watch watch;
  const auto all = run({300, 300}, {0, 0, 0, 0, 1}, watch);
  EXPECT_EQ(total(all).cycles, 2);
  EXPECT_EQ(total(all).messages, 1);
}

TEST(Turns, ACycleAloneCutsWhatIsWrittenAtATime) {
  Watch watch;
  const auto all = run({6, 6}, {0, 2 * kCycle}, watch);
  EXPECT_EQ(total(all).cycles, 6);
  EXPECT_EQ(total(all).messages, 0);
  EXPECT_EQ(watch.order.size(), 12u) << "blocks of the view are smaller than the cycle";
}

}  // namespace
}  // namespace penstock::exec::turns_test
