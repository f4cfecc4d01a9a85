// A pipeline under a sync policy: how often it syncs, and whom a sync that fails is told to with
// which counts.
#include <gtest/gtest.h>

#include <cerrno>

#include "comm/thread_comm.hpp"
#include "exec/blocks.hpp"
#include "exec/pipeline.hpp"
#include "exec/random_case.hpp"
#include "exec/stager.hpp"
#include "io/faulty.hpp"
#include "io/recording_file.hpp"
#include "io/sync_policy.hpp"
#include "io/temporary_file.hpp"

namespace penstock::exec::sync_test {
namespace {

// For policies that take turns; a rank with itself here.
class OpenGate final : public Gate {
 public:
  Result<void> enter() override { return {}; }
  void leave() noexcept override {}
};

// A policy, with the numbers of the wrote() calls that it synced after: bit i for call i.
class Noting final : public io::FileSync {
 public:
  Noting(io::MechanismFile& file, std::unique_ptr<io::FileSync> inner)
      : FileSync(file), inner_(std::move(inner)) {}

  Result<bool> wrote(Extent where, int64_t bytes) override {
    EXPECT_LE(bytes, where.size());
    const int call = calls++;
    Result<bool> pushed = inner_->wrote(where, bytes);
    if (pushed && *pushed && call < 63) synced_after |= int64_t{1} << call;
    return pushed;
  }
  int64_t piece_bytes() const noexcept override { return inner_->piece_bytes(); }

  int calls = 0;
  int64_t synced_after = 0;

 protected:
  Result<void> sync_now(io::SyncKind kind) override { return inner_->sync(kind); }
  Result<void> sync_at_close() override {
    const Result<bool> synced = inner_->at_close();
    return synced ? Result<void>() : tl::unexpected(synced.error());
  }

 private:
  std::unique_ptr<io::FileSync> inner_;
};

// A rank's file under POLICY=BYTES, with what the tests look at.
struct Synced {
  Synced(comm::Comm& comm, const std::string& path, int64_t every_bytes,
         const io::FaultPlan& faults = {}, std::string_view policy = "every",
         std::string_view mechanism = "pwrite")
      : file(std::make_unique<io::FaultyFile>(
                 io::find_mechanism(mechanism)->open({path, 4096}).value(), faults),
             record),
        sync(file, io::find_sync_policy(policy)->open(
                       file, {.bytes = every_bytes, .gate = std::make_shared<OpenGate>()})),
        pipeline(comm, file, {}) {
    pipeline.set_sync(&sync);
  }

  io::SyncRecord record;
  io::RecordingFile file;
  Noting sync;
  Pipeline pipeline;
};

TEST(Sync, AWriterSyncsOnceForEachSoManyBytesOfItsWrites) {
  const io::TemporaryFile path;
  comm::run_thread_team(3, [&](comm::Comm& comm) {
    Synced s(comm, path.path(), 4096);
    const Blocks blocks(1024 * comm.rank(), 1024, 3 * 1024, 10);
    const Pipeline::Policy individual{plan::find_algorithm("individual"), {}, nullptr};
    EXPECT_EQ(s.pipeline.write_all(blocks.request(), individual).agreed, ErrorClass::none);
    EXPECT_EQ(s.record.data, 2);
    EXPECT_EQ(s.pipeline.write_alone(blocks.request()).agreed, ErrorClass::none);
    EXPECT_EQ(s.record.data, 5) << "20 KiB: alone and together count together";
    EXPECT_EQ(s.pipeline.spent_together().traffic.syncs, 2);
    EXPECT_EQ(s.pipeline.spent_alone().traffic.syncs, 3);
  });
}

TEST(Sync, OnlyWritersSyncAndTheyCountWhatTheyWriteForOthers) {
  const io::TemporaryFile path;
  comm::run_thread_team(3, [&](comm::Comm& comm) {
    Synced s(comm, path.path(), 8192);
    const Blocks blocks(1024 * comm.rank(), 1024, 3 * 1024, 8);  // 24 KiB together: 6 pages
    const Pipeline::Policy one{plan::find_algorithm("two_phase"), {1, 4096}, nullptr};
    const WriteOutcome out = s.pipeline.write_all(blocks.request(), one);
    EXPECT_EQ(out.agreed, ErrorClass::none);
    EXPECT_EQ(s.record.data, out.written_bytes / 8192);
    int64_t syncs[1] = {s.record.data};
    ASSERT_TRUE(comm.all_sum(syncs));
    EXPECT_EQ(syncs[0], 3);
  });
}

// So that the device begins while the rest is being copied.
TEST(Sync, OnePieceOfMemoryIsCutWhereAPolicyActsInBetween) {
  const io::TemporaryFile path;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    for (const auto& [policy, writes] : {std::pair("stream", 3), std::pair("every", 1)}) {
      Synced s(comm, path.path(), 8192, {}, policy);
      const Blocks one(100, 20'000, 20'000, 1);
      EXPECT_EQ(s.pipeline.write_alone(one.request()).prefix_bytes, 20'000);
      EXPECT_EQ(s.sync.calls, writes) << policy;
      EXPECT_EQ(s.pipeline.spent_alone().traffic.writes, writes) << policy;
    }
  });
}

TEST(Sync, AFailureTakesWhatWasWrittenSinceTheLastOneOutOfTheCount) {
  const io::TemporaryFile path;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    const bool fails = comm.rank() == 1;
    Synced s(comm, path.path(), 3 * 1024, {.sync_errno = fails ? ENOSPC : 0, .nth_sync = 2});
    const Blocks blocks(1024 * comm.rank(), 1024, 2 * 1024, 10);
    const Pipeline::Policy individual{plan::find_algorithm("individual"), {}, nullptr};
    const WriteOutcome out = s.pipeline.write_all(blocks.request(), individual);
    EXPECT_EQ(out.agreed, ErrorClass::no_space);
    EXPECT_EQ(out.prefix_bytes, fails ? 3 * 1024 : 10 * 1024);
    EXPECT_EQ(out.written_bytes, out.prefix_bytes);
    EXPECT_EQ(out.mine.has_value(), fails);
    const WriteOutcome next = s.pipeline.write_all(blocks.request(), individual);
    EXPECT_EQ(next.agreed, ErrorClass::none) << "later calls are tried anew";
    EXPECT_EQ(next.prefix_bytes, 10 * 1024);
    EXPECT_EQ(s.sync.at_close().has_value(), !fails);
  });
}

// Where writes are only started, the next page is under way when the sync for one fails. Nowhere
// else, though with a thread that writes it has been handed over.
TEST(Sync, AFailureTakesAPageThatHadBegunToEnterTheFileOutOfTheCountToo) {
  struct Way {
    std::string_view algorithm, mechanism;
    int64_t counted;
  };
  for (const Way& way :
       {Way{"two_phase", "pwrite", 4096}, Way{"two_phase", "posix_aio", 0},
        Way{"dedicated_writer", "pwrite", 4096}, Way{"dedicated_writer", "posix_aio", 0}}) {
    const io::TemporaryFile path;
    comm::run_thread_team(2, [&](comm::Comm& comm) {
      Synced s(comm, path.path(), 4096, {.sync_errno = EIO, .nth_sync = 1}, "every", way.mechanism);
      const Blocks page(4096 * comm.rank(), 4096, 4096, 1);
      const plan::Parameters one_writer{.writers = 1, .cycle_bytes = 4096};
      const Pipeline::Policy policy{plan::find_algorithm(way.algorithm), one_writer, nullptr};
      const WriteOutcome out = s.pipeline.write_all(page.request(), policy);
      EXPECT_EQ(out.agreed, ErrorClass::io) << way.algorithm << way.mechanism;
      EXPECT_EQ(out.prefix_bytes, comm.rank() == 0 ? 0 : way.counted)
          << way.algorithm << way.mechanism;
    });
  }
}

// Pieces of 4 KiB, the second of whose syncs fails: the first two pieces are on the device, of the
// others of its stretch nothing is certain, whichever piece they were in.
TEST(Sync, AFailureTakesEarlierPiecesOfASplitWriteOutOfTheCount) {
  const io::TemporaryFile path;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    Synced s(comm, path.path(), 8192, {.sync_errno = ENOSPC, .nth_sync = 2});
    s.pipeline.set_stager(std::make_shared<Stager>(), 4096);
    const Blocks blocks(0, 4096, 8192, 5);
    const Pipeline::Policy individual{plan::find_algorithm("individual"), {}, nullptr};
    s.pipeline.begin_all(blocks.request(), individual);
    const WriteOutcome out = s.pipeline.end_all();
    EXPECT_EQ(out.agreed, ErrorClass::no_space);
    EXPECT_EQ(out.prefix_bytes, 2 * 4096);
    EXPECT_EQ(out.written_bytes, 3 * 4096) << "the fifth was not to be synced yet";
  });
}

TEST(Sync, APulseComesAtTheSamePointsOfEachRanksStream) {
  const io::TemporaryFile path;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    Synced s(comm, path.path(), 7 * 1024, {}, "pulse");
    const int64_t kib = comm.rank() == 0 ? 2 : 3;  // 42 KiB each, cut differently
    const Blocks blocks(1 << 20 << comm.rank(), kib * 1024, 4 * 1024, 42 / kib);
    const Pipeline::Policy individual{plan::find_algorithm("individual"), {}, nullptr};
    EXPECT_EQ(s.pipeline.write_all(blocks.request(), individual).agreed, ErrorClass::none);
    EXPECT_EQ(s.record.full, 6);
    EXPECT_EQ(s.record.data, 0);
    EXPECT_EQ(s.pipeline.spent_together().traffic.syncs, 6);
  });
}

// Two writers with six full pages of 4 KiB each: they pulse after their second, fourth and sixth.
TEST(Sync, TheWritersOfACollectiveWritePulseInTheSameCycles) {
  const io::TemporaryFile path;
  comm::run_thread_team(3, [&](comm::Comm& comm) {
    Synced s(comm, path.path(), 8192, {}, "pulse");
    const Blocks blocks(1024 * comm.rank(), 1024, 3 * 1024, 16);
    const Pipeline::Policy two{plan::find_algorithm("two_phase"), {2, 4096}, nullptr};
    const WriteOutcome out = s.pipeline.write_all(blocks.request(), two);
    EXPECT_EQ(out.agreed, ErrorClass::none);
    if (out.written_bytes > 0) {
      EXPECT_EQ(out.written_bytes, 6 * 4096);
      EXPECT_EQ(s.sync.synced_after, 0b101010);
    }
    int64_t pulses[1] = {s.record.full};
    ASSERT_TRUE(comm.all_sum(pulses));
    EXPECT_EQ(pulses[0], 2 * 3);
  });
}

TEST(Sync, PoliciesThatDoNotWaitNeverSayThatBytesAreOnTheDevice) {
  const io::TemporaryFile path;
  for (const char* policy : {"stream", "background"})
    comm::run_thread_team(2, [&](comm::Comm& comm) {
      Synced s(comm, path.path(), 1, {}, policy);
      const Blocks blocks(1024 * comm.rank(), 1024, 2 * 1024, 10);
      const Pipeline::Policy policies[] = {{plan::find_algorithm("individual"), {}, nullptr},
                                           {plan::find_algorithm("two_phase"), {0, 4096}, nullptr}};
      for (const Pipeline::Policy& p : policies)
        EXPECT_EQ(s.pipeline.write_all(blocks.request(), p).agreed, ErrorClass::none) << policy;
      EXPECT_GE(s.sync.calls, 10) << "it was told";
      EXPECT_EQ(s.sync.synced_after, 0) << policy;
      EXPECT_EQ(s.pipeline.spent_together().traffic.syncs, 0) << policy;
      EXPECT_TRUE(s.sync.at_close());
    });
}

// One writer of pages of 4 KiB, the second sync fails: pages 0 and 1 are there, 2 and 3 are not
// certain, 4 was not synced by the policy but nothing has gone wrong with it.
TEST(Sync, AWritersFailureTakesOtherRanksBytesOutOfTheirCounts) {
  const io::TemporaryFile path;
  comm::run_thread_team(4, [&](comm::Comm& comm) {
    Synced s(comm, path.path(), 8192, {.sync_errno = EIO, .nth_sync = 2});
    const Blocks blocks(1024 * comm.rank(), 1024, 4 * 1024, 5);  // one block of each page
    const Pipeline::Policy one{plan::find_algorithm("two_phase"), {1, 4096}, nullptr};
    const WriteOutcome out = s.pipeline.write_all(blocks.request(), one);
    EXPECT_EQ(out.agreed, ErrorClass::io);
    EXPECT_EQ(out.prefix_bytes, 2 * 1024);
    if (out.mine) {
      EXPECT_EQ(out.written_bytes, 3 * 4096);
    }
  });
}

// A policy that syncs between writes, each in its turn.
std::string_view policy_of(uint64_t seed) {
  std::vector<std::string_view> names;
  for (const io::SyncPolicy* p : io::sync_policies())
    if (p->takes_bytes) names.push_back(p->name);
  return names[seed % names.size()];
}

// Faults of writes and of syncs drawn at random: all ranks are told the same, and no count claims a
// byte that is not there.
void run_case(const plan::Algorithm& algorithm, int ranks, uint64_t seed) {
  Random random(seed);
  const auto cases = draw_team(random, ranks, true);
  const io::TemporaryFile path;
  fill_with_background(path.path());
  std::vector<io::FaultPlan> faults(static_cast<size_t>(ranks));
  for (io::FaultPlan& f : faults) {
    if (draw(random, 0, 1) == 0) {
      f.sync_errno = ENOSPC;
      f.nth_sync = int(draw(random, 0, 4));
    }
    if (draw(random, 0, 3) == 0) {
      f.write_errno = EIO;
      f.at_offset = draw(random, 0, 60000);
    }
  }
  const int64_t every_bytes = draw(random, 1, 20000);
  const std::string_view policy = policy_of(seed);
  SCOPED_TRACE(policy);
  plan::Parameters parameters;
  if (algorithm.exchanges)
    parameters = plan::taken_by(algorithm, {int(draw(random, 0, 3)), 4096, 8192});
  std::vector<WriteOutcome> outcomes(cases.size());
  comm::run_thread_team(ranks, [&](comm::Comm& comm) {
    const auto rank = size_t(comm.rank());
    const RankCase& c = cases[rank];
    Synced s(comm, path.path(), every_bytes, faults[rank], policy);
    const WriteRequest request{&c.view,       c.range,        c.memory.data(),
                               c.memory_type, c.memory_count, ErrorClass::none};
    outcomes[rank] = s.pipeline.write_all(request, {&algorithm, parameters, nullptr});
    EXPECT_GE(outcomes[rank].written_bytes, 0);
    const bool lost_by_a_sync = outcomes[rank].mine && outcomes[rank].mine->operation == "fsync";
    EXPECT_FALSE(s.sync.at_close().has_value() && lost_by_a_sync) << "close tells it again";
  });
  bool somebody_failed = false;
  for (const WriteOutcome& out : outcomes) somebody_failed = somebody_failed || out.mine;
  const std::vector<std::byte> contents = path.contents();
  for (size_t r = 0; r < cases.size(); ++r) {
    EXPECT_EQ(outcomes[r].agreed, outcomes[0].agreed);
    EXPECT_EQ(outcomes[r].agreed != ErrorClass::none, somebody_failed);
    EXPECT_LE(outcomes[r].prefix_bytes, prefix_in_file(cases[r], contents));
    if (!somebody_failed) {
      EXPECT_EQ(outcomes[r].prefix_bytes, cases[r].range.size());
    }
  }
}

class SyncTruth : public testing::TestWithParam<const plan::Algorithm*> {};

TEST_P(SyncTruth, EveryRankIsToldTheSameClassAndNoCountClaimsTooMuch) {
  for (const int ranks : {1, 2, 3, 4})
    for (uint64_t seed = 0; seed < 100; ++seed) {
      SCOPED_TRACE("ranks " + std::to_string(ranks) + ", seed " + std::to_string(seed));
      run_case(*GetParam(), ranks, seed * 91 + uint64_t(ranks));
      if (HasFailure()) return;
    }
}

INSTANTIATE_TEST_SUITE_P(Every, SyncTruth,
                         testing::ValuesIn(plan::algorithms().begin(), plan::algorithms().end()),
                         [](const auto& algorithm) { return std::string(algorithm.param->name); });

}  // namespace
}  // namespace penstock::exec::sync_test
