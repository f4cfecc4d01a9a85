// Staged writes of a pipeline: the calls return while the writes are held, the bound holds them
// back, and what cannot be written is told to everybody at the end, with true counts.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>

#include "comm/thread_comm.hpp"
#include "exec/blocks.hpp"
#include "exec/pipeline.hpp"
#include "exec/random_case.hpp"
#include "exec/stager.hpp"
#include "io/faulty.hpp"
#include "io/held_file.hpp"
#include "io/sync_policy.hpp"
#include "io/temporary_file.hpp"

namespace penstock::exec::staged_test {
namespace {

constexpr int64_t kBlock = 1024;
constexpr int64_t kBlocks = 32;

std::unique_ptr<io::MechanismFile> open_plain(const std::string& path) {
  return io::find_mechanism("pwrite")->open({path}).value();
}

struct Way {
  const char* algorithm;
  const char* exchange;
};

class Ways : public testing::TestWithParam<Way> {
 protected:
  static Pipeline::Policy policy() {
    const plan::Algorithm* const a = plan::find_algorithm(GetParam().algorithm);
    return {a, plan::taken_by(*a, {2, 4096}), nullptr,
            a->exchanges ? find_exchange(GetParam().exchange) : nullptr};
  }
};

TEST_P(Ways, BeginReturnsWhileTheWritesAreHeldAndTheBufferIsFreeAgain) {
  const io::TemporaryFile path;
  io::Hold hold;
  comm::run_thread_team(3, [&](comm::Comm& comm) {
    io::HeldFile file(open_plain(path.path()), hold);
    Pipeline pipeline(comm, file, {});
    pipeline.set_stager(std::make_shared<Stager>(), kStagedLimitBytes);
    Blocks mine = dealt(comm, kBlock, kBlocks);
    pipeline.begin_all(mine.request(), policy());
    std::ranges::fill(mine.data, std::byte{0x7F});
    ASSERT_TRUE(comm.barrier());
    EXPECT_EQ(hold.passed(), 0);
    EXPECT_TRUE(path.contents().empty());
    ASSERT_TRUE(comm.barrier());
    hold.open();
    const WriteOutcome out = pipeline.end_all();
    EXPECT_EQ(out.agreed, ErrorClass::none);
    EXPECT_EQ(out.prefix_bytes, kBlock * kBlocks);
    int64_t written[1] = {out.written_bytes};
    ASSERT_TRUE(comm.all_sum(written));
    EXPECT_EQ(written[0], 3 * kBlock * kBlocks);
    expect_dealt(path.contents(), 3, kBlock, kBlocks);
  });
}

TEST_P(Ways, ASmallBoundHoldsTheCallBackAndAllArrives) {
  const io::TemporaryFile path;
  comm::run_thread_team(3, [&](comm::Comm& comm) {
    const auto file = open_plain(path.path());
    Pipeline pipeline(comm, *file, {});
    pipeline.set_stager(std::make_shared<Stager>(), 4096);
    const Blocks mine = dealt(comm, kBlock, kBlocks);
    for (int again = 0; again < 3; ++again) {
      pipeline.begin_all(mine.request(), policy());
      EXPECT_EQ(pipeline.end_all().agreed, ErrorClass::none);
      EXPECT_EQ(pipeline.write_all(mine.request(), policy()).agreed, ErrorClass::none);
    }
  });
  expect_dealt(path.contents(), 3, kBlock, kBlocks);
}

TEST_P(Ways, AFaultIsToldAtTheEndToAllRanksWithTrueCounts) {
  for (const int nth : {1, 2, 5}) {
    const io::TemporaryFile path;
    std::atomic<int> told = 0;
    comm::run_thread_team(3, [&](comm::Comm& comm) {
      io::FaultPlan plan;
      if (comm.rank() == 0) {
        plan.write_errno = ENOSPC;
        plan.nth_write = nth;
        plan.bytes_before_fault = 100;
      }
      io::FaultyFile file(open_plain(path.path()), plan);
      Pipeline pipeline(comm, file, {});
      pipeline.set_stager(std::make_shared<Stager>(), kStagedLimitBytes);
      const Blocks mine = dealt(comm, kBlock, kBlocks);
      pipeline.begin_all(mine.request(), policy());
      const WriteOutcome out = pipeline.end_all();
      if (out.agreed == ErrorClass::no_space) ++told;
      if (comm.rank() == 0) {
        ASSERT_TRUE(out.mine);
        EXPECT_EQ(out.mine->error_class, ErrorClass::no_space);
      }
      ASSERT_TRUE(comm.barrier());
      const std::vector<std::byte> there = path.contents();
      for (int64_t k = 0; k < out.prefix_bytes; ++k) {
        const Off at = mine.view.offset_of(k);
        ASSERT_LT(at, Off(there.size()));
        ASSERT_EQ(there[size_t(at)], value_of(comm.rank())) << "byte " << k << " is counted";
      }
    });
    EXPECT_EQ(told, 3) << "write " << nth;
  }
}

TEST_P(Ways, ASyncThatFailsBehindTheCallIsToldAtTheEnd) {
  const io::TemporaryFile path;
  std::atomic<int> told = 0;
  comm::run_thread_team(3, [&](comm::Comm& comm) {
    io::FaultPlan plan;
    plan.sync_errno = EIO;
    io::FaultyFile file(open_plain(path.path()), plan);
    const auto sync = io::find_sync_policy("every")->open(file, {.bytes = 4096, .gate = nullptr});
    Pipeline pipeline(comm, file, {});
    pipeline.set_sync(sync.get());
    pipeline.set_stager(std::make_shared<Stager>(), kStagedLimitBytes);
    const Blocks mine = dealt(comm, kBlock, kBlocks);
    pipeline.begin_all(mine.request(), policy());
    const WriteOutcome out = pipeline.end_all();
    if (out.agreed == ErrorClass::io) ++told;
    EXPECT_LT(out.prefix_bytes, kBlock * kBlocks);
  });
  EXPECT_EQ(told, 3);
}

std::string name_of(const testing::TestParamInfo<Way>& info) {
  return std::string(info.param.algorithm) + "_" + info.param.exchange;
}

INSTANTIATE_TEST_SUITE_P(Staged, Ways,
                         testing::Values(Way{"individual", "none"}, Way{"two_phase", "messages"},
                                         Way{"two_phase", "shm"}, Way{"cyclic", "messages"},
                                         Way{"cyclic", "shm"}, Way{"designated_writer", "messages"},
                                         Way{"designated_writer", "shm"}),
                         name_of);

// --- Independent ---

TEST(StagedAlone, IsCopiedWhenTheCallReturnsAndWrittenInOrder) {
  const io::TemporaryFile path;
  io::Hold hold;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    io::HeldFile file(open_plain(path.path()), hold);
    Pipeline pipeline(comm, file, {});
    pipeline.set_stager(std::make_shared<Stager>(), kStagedLimitBytes);
    Blocks mine = dealt(comm, kBlock, kBlocks);
    for (int value = 5; value >= 1; --value) {  // the last one stays
      std::ranges::fill(mine.data, std::byte(value));
      const WriteOutcome out = pipeline.stage_alone(mine.request());
      EXPECT_EQ(out.agreed, ErrorClass::none);
      EXPECT_EQ(out.prefix_bytes, kBlock * kBlocks);
    }
    EXPECT_EQ(hold.passed(), 0);
    EXPECT_EQ(pipeline.staged_notes().accepted_bytes, 5 * kBlock * kBlocks);
    EXPECT_EQ(pipeline.staged_notes().written_bytes, 0);
    hold.open();
    pipeline.drain();
    EXPECT_EQ(pipeline.staged_notes().written_bytes, 5 * kBlock * kBlocks);
    EXPECT_EQ(pipeline.staged_notes().lost_bytes, 0);
  });
  expect_dealt(path.contents(), 1, kBlock, kBlocks);
}

TEST(StagedAlone, TheNextCallMayComeWithAnotherViewBeforeThisIsWritten) {
  const io::TemporaryFile path;
  io::Hold hold;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    io::HeldFile file(open_plain(path.path()), hold);
    Pipeline pipeline(comm, file, {});
    pipeline.set_stager(std::make_shared<Stager>(), kStagedLimitBytes);
    {
      const Blocks mine = dealt(comm, kBlock, kBlocks);
      pipeline.stage_alone(mine.request());
    }
    hold.open();
    pipeline.drain();
  });
  expect_dealt(path.contents(), 1, kBlock, kBlocks);
}

TEST(StagedAlone, RandomViewsArriveThroughASmallBound) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    const std::vector<RankCase> cases = draw_team(random, 3, seed % 2 == 0);
    const io::TemporaryFile path;
    fill_with_background(path.path());
    comm::run_thread_team(3, [&](comm::Comm& comm) {
      const auto file = open_plain(path.path());
      Pipeline pipeline(comm, *file, {});
      pipeline.set_stager(std::make_shared<Stager>(), seed % 3 == 0 ? kStagedLimitBytes : 4096);
      const RankCase& c = cases[size_t(comm.rank())];
      const WriteRequest request{&c.view,       c.range,        c.memory.data(),
                                 c.memory_type, c.memory_count, ErrorClass::none};
      EXPECT_EQ(pipeline.stage_alone(request).prefix_bytes, c.range.size());
      pipeline.drain();
      EXPECT_EQ(pipeline.staged_notes().written_bytes, c.range.size());
    });
    ASSERT_TRUE(path.contents() == expectation(cases)) << "seed " << seed;
  }
}

int times_reserved = 0;

// Of every three pieces the last finds none.
Result<void> reserve_two_of_three(AlignedBuffer& memory, size_t bytes) {
  if (++times_reserved % 3 == 0)
    return tl::unexpected(Error{ErrorClass::no_memory, ENOMEM, "", ""});
  return memory.reserve(bytes);
}

Result<void> reserve_none(AlignedBuffer&, size_t) {
  return tl::unexpected(Error{ErrorClass::no_memory, ENOMEM, "", ""});
}

TEST(StagedAlone, WhatFailsAtOnceForWantOfACopyIsTheCallersOwn) {
  const io::TemporaryFile path;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    io::FaultyFile file(open_plain(path.path()), {.nth_write = 1, .write_errno = ENOSPC});
    Pipeline pipeline(comm, file, {});
    pipeline.set_stager(std::make_shared<Stager>(&io::start_io_thread, &reserve_none), 4096);
    const std::vector<std::byte> bytes(100);
    const layout::FileView view;
    const WriteRequest request{&view, {0, 100}, bytes.data(), layout::LoopTree::bytes(1), 100};
    const WriteOutcome failed = pipeline.stage_alone(request);
    EXPECT_EQ(failed.agreed, ErrorClass::no_space);
    EXPECT_EQ(failed.prefix_bytes, 0);
    EXPECT_EQ(pipeline.stage_alone(request).prefix_bytes, 100);
    pipeline.drain();
    EXPECT_EQ(pipeline.staged_failures(), 0) << "told already";
    EXPECT_EQ(pipeline.staged_notes().lost_bytes, 0);
    EXPECT_EQ(pipeline.staged_notes().written_bytes, 100);
  });
}

TEST(StagedAlone, WithoutMemoryForACopyTheRestIsWrittenBehindWhatIsStaged) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Random random(seed);
    const std::vector<RankCase> cases = draw_team(random, 1, false);
    const io::TemporaryFile path;
    fill_with_background(path.path());
    comm::run_thread_team(1, [&](comm::Comm& comm) {
      const auto file = open_plain(path.path());
      Pipeline pipeline(comm, *file, {});
      pipeline.set_stager(std::make_shared<Stager>(&io::start_io_thread, &reserve_two_of_three),
                          seed % 2 == 0 ? kStagedLimitBytes : 4096);
      const RankCase& c = cases[0];
      const std::vector<std::byte> older(c.memory.size(), std::byte{0x55});
      WriteRequest request{&c.view,       c.range,        older.data(),
                           c.memory_type, c.memory_count, ErrorClass::none};
      for (const std::byte* const memory : {older.data(), c.memory.data()}) {
        request.memory = memory;
        const WriteOutcome out = pipeline.stage_alone(request);
        EXPECT_EQ(out.agreed, ErrorClass::none);
        EXPECT_EQ(out.prefix_bytes, c.range.size());
      }
      pipeline.drain();
      EXPECT_EQ(pipeline.staged_notes().accepted_bytes, 2 * c.range.size());
      EXPECT_EQ(pipeline.staged_notes().written_bytes, 2 * c.range.size());
      EXPECT_EQ(pipeline.staged_notes().lost_bytes, 0);
    });
    ASSERT_TRUE(path.contents() == expectation(cases)) << "seed " << seed;
  }
}

TEST(StagedAlone, WhatIsLostIsKnownWithItsPlaceAndTheRestIsWritten) {
  const io::TemporaryFile path;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    io::FaultPlan plan;
    plan.write_errno = ENOSPC;
    plan.nth_write = 2;
    io::FaultyFile file(open_plain(path.path()), plan);
    Pipeline pipeline(comm, file, {});
    pipeline.set_stager(std::make_shared<Stager>(), kStagedLimitBytes);
    const layout::FileView view;
    const std::vector<std::byte> data(4096, std::byte{1});
    for (int64_t i = 0; i < 3; ++i)
      pipeline.stage_alone({&view,
                            {i * 4096, i * 4096 + 4096},
                            data.data(),
                            layout::LoopTree::bytes(1),
                            4096,
                            ErrorClass::none});
    pipeline.drain();
    const StagedNotes notes = pipeline.staged_notes();
    EXPECT_EQ(notes.accepted_bytes, 3 * 4096);
    EXPECT_EQ(notes.written_bytes, 2 * 4096);
    EXPECT_EQ(notes.lost_bytes, 4096);
    ASSERT_TRUE(notes.failure);
    EXPECT_EQ(notes.failure->error_class, ErrorClass::no_space);
    EXPECT_EQ(notes.lost, (std::vector<Extent>{{4096, 8192}}));
  });
  EXPECT_EQ(path.contents()[8192], std::byte{1});
}

WriteRequest one_page(const layout::FileView& view, const std::vector<std::byte>& data, int64_t i) {
  return {&view,       {i * 4096, i * 4096 + 4096},
          data.data(), layout::LoopTree::bytes(1),
          4096,        ErrorClass::none};
}

// Nobody knows what of the three calls the kernel has dropped.
TEST(StagedAlone, ASyncThatFailsTakesWhatEarlierCallsWroteSinceTheLastOne) {
  const io::TemporaryFile path;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    io::FaultyFile file(open_plain(path.path()), {.sync_errno = EIO, .nth_sync = 2});
    const auto sync =
        io::find_sync_policy("every")->open(file, {.bytes = 3 * 4096, .gate = nullptr});
    Pipeline pipeline(comm, file, {});
    pipeline.set_sync(sync.get());
    pipeline.set_stager(std::make_shared<Stager>(), kStagedLimitBytes);
    const layout::FileView view;
    const std::vector<std::byte> data(4096, std::byte{1});
    for (int64_t i = 0; i < 7; ++i) pipeline.stage_alone(one_page(view, data, i));
    pipeline.drain();
    const StagedNotes notes = pipeline.staged_notes();
    EXPECT_EQ(notes.accepted_bytes, 7 * 4096);
    EXPECT_EQ(notes.written_bytes, 4 * 4096) << "synced, and after the sync that failed";
    EXPECT_EQ(notes.lost_bytes, 3 * 4096);
    EXPECT_EQ(notes.lost, (std::vector<Extent>{{3 * 4096, 6 * 4096}}));
    EXPECT_EQ(notes.spent.traffic.syncs, 1);
  });
}

// Three blocks of a view with holes are written, and synced, one by one.
TEST(StagedAlone, WhatASyncHasSavedALaterOneOfTheSameCallDoesNotTake) {
  const io::TemporaryFile path;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    io::FaultyFile file(open_plain(path.path()), {.sync_errno = EIO, .nth_sync = 2});
    const auto sync = io::find_sync_policy("every")->open(file, {.bytes = 4096, .gate = nullptr});
    Pipeline pipeline(comm, file, {});
    pipeline.set_sync(sync.get());
    pipeline.set_stager(std::make_shared<Stager>(), kStagedLimitBytes);
    const layout::FileView view;
    const std::vector<std::byte> first(2048, std::byte{1});
    pipeline.stage_alone({&view, {0, 2048}, first.data(), layout::LoopTree::bytes(1), 2048});
    const Blocks rest(8192, 4096, 8192, 3);
    pipeline.stage_alone(rest.request());
    pipeline.drain();
    const StagedNotes notes = pipeline.staged_notes();
    EXPECT_EQ(notes.written_bytes, 2048 + 4096);
    EXPECT_EQ(notes.lost_bytes, 2 * 4096);
    EXPECT_EQ(notes.lost, (std::vector<Extent>{{16384, 28672}}));
  });
}

TEST(StagedAlone, ASyncOfAnotherCallThatFailsTakesWhatWasStagedBeforeIt) {
  const io::TemporaryFile path;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    io::FaultyFile file(open_plain(path.path()), {.sync_errno = EIO, .nth_sync = 1});
    const auto sync =
        io::find_sync_policy("every")->open(file, {.bytes = 2 * 4096, .gate = nullptr});
    Pipeline pipeline(comm, file, {});
    pipeline.set_sync(sync.get());
    pipeline.set_stager(std::make_shared<Stager>(), kStagedLimitBytes);
    const layout::FileView view;
    const std::vector<std::byte> data(4096, std::byte{1});
    pipeline.stage_alone(one_page(view, data, 0));
    pipeline.drain();
    EXPECT_EQ(pipeline.write_alone(one_page(view, data, 1)).agreed, ErrorClass::io);
    pipeline.settle_syncs();
    EXPECT_EQ(pipeline.staged_notes().written_bytes, 0);
    EXPECT_EQ(pipeline.staged_notes().lost, (std::vector<Extent>{{0, 4096}}));
  });
}

}  // namespace
}  // namespace penstock::exec::staged_test
