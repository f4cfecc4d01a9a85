// dedicated_writer: a thread writes and syncs, while its rank and the others fill the next page.
// That no byte differs and every count is true is the conformance and the truth suites' to say.
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>

#include "comm/thread_comm.hpp"
#include "exec/blocks.hpp"
#include "exec/pipeline.hpp"
#include "io/eventually.hpp"
#include "io/faulty.hpp"
#include "io/recording_file.hpp"
#include "io/sync_policy.hpp"
#include "io/temporary_file.hpp"

namespace penstock::exec::behind_test {
namespace {

constexpr int64_t kPage = 4096;

// What the writer's file saw.
struct Seen {
  std::atomic<int> leased = 0, own_thread = 0, other_thread = 0, ahead = 0;
};

class Watched final : public io::RecordingFile {
 public:
  Watched(std::unique_ptr<io::MechanismFile> inner, io::SyncRecord& record, Seen& seen)
      : RecordingFile(std::move(inner), record), seen_(seen), owner_(::pthread_self()) {}

  Result<io::Lease> lease(Extent where) override {
    ++seen_.leased;
    return RecordingFile::lease(where);
  }
  // The page behind this one is leased while this one is being written, if there is one.
  void submit(io::Lease lease, std::span<const Extent> dirty) override {
    if (!dirty.empty()) {
      ++(::pthread_equal(owner_, ::pthread_self()) != 0 ? seen_.own_thread : seen_.other_thread);
      const int page = int(lease.where.begin / kPage);
      if (page < last_page && io::eventually([&] { return seen_.leased > page + 1; }))
        ++seen_.ahead;
    }
    RecordingFile::submit(lease, dirty);
  }
  Result<void> sync(io::SyncKind kind) override {
    if (::pthread_equal(owner_, ::pthread_self()) != 0) ++synced_by_rank;
    return RecordingFile::sync(kind);
  }

  int last_page = 0;
  std::atomic<int> synced_by_rank = 0;

 private:
  Seen& seen_;
  pthread_t owner_;
};

// Blocks of 1 KiB dealt to the ranks, `pages` pages of one writer together.
Blocks pages_of(const comm::Comm& comm, int64_t pages) {
  return dealt(comm, 1024, pages * kPage / 1024 / comm.size());
}

Pipeline::Policy dedicated(int writer, const Exchange* exchange = nullptr) {
  return {plan::find_algorithm("dedicated_writer"), {0, kPage, 0, writer}, nullptr, exchange};
}

class Exchanged : public testing::TestWithParam<const Exchange*> {};

TEST_P(Exchanged, PagesAreWrittenByAThreadWhileTheNextIsFilled) {
  constexpr int kPages = 8, kWriter = 2;
  const io::TemporaryFile path;
  comm::run_thread_team(4, [&](comm::Comm& comm) {
    io::SyncRecord record;
    Seen seen;
    Watched file(io::find_mechanism("pwrite")->open({path.path()}).value(), record, seen);
    file.last_page = kPages - 1;
    Pipeline pipeline(comm, file, {});
    const Blocks blocks = pages_of(comm, kPages);
    for (int again = 0; again < 2; ++again) {
      seen.leased = 0;
      const WriteOutcome out = pipeline.write_all(blocks.request(), dedicated(kWriter, GetParam()));
      EXPECT_EQ(out.agreed, ErrorClass::none);
      EXPECT_EQ(out.prefix_bytes, out.agreed == ErrorClass::none ? int64_t(blocks.data.size()) : 0);
      EXPECT_EQ(out.written_bytes, comm.rank() == kWriter ? kPages * kPage : 0);
    }
    EXPECT_EQ(seen.own_thread, 0);
    EXPECT_EQ(seen.other_thread, comm.rank() == kWriter ? 2 * kPages : 0);
    EXPECT_EQ(seen.ahead, comm.rank() == kWriter ? 2 * (kPages - 1) : 0);
    EXPECT_EQ(pipeline.degraded(), "");
    EXPECT_TRUE(file.close());
  });
  EXPECT_EQ(path.contents().size(), size_t(kPages * kPage));
}

INSTANTIATE_TEST_SUITE_P(Dedicated, Exchanged,
                         testing::ValuesIn(exchanges().begin(), exchanges().end()),
                         [](const auto& e) { return std::string(e.param->name); });

TEST(Dedicated, TheThreadSyncsAndTheRankDoesNot) {
  const io::TemporaryFile path;
  comm::run_thread_team(2, [&](comm::Comm& comm) {
    io::SyncRecord record;
    Seen seen;
    Watched file(io::find_mechanism("pwrite")->open({path.path()}).value(), record, seen);
    const auto sync =
        io::find_sync_policy("every")->open(file, {.bytes = 2 * kPage, .gate = nullptr});
    Pipeline pipeline(comm, file, {});
    pipeline.set_sync(sync.get());
    const Blocks blocks = pages_of(comm, 6);
    EXPECT_EQ(pipeline.write_all(blocks.request(), dedicated(0)).agreed, ErrorClass::none);
    EXPECT_EQ(record.data, comm.rank() == 0 ? 3 : 0);
    EXPECT_EQ(pipeline.spent_together().traffic.syncs, comm.rank() == 0 ? 3 : 0);
    EXPECT_EQ(file.synced_by_rank, 0);
    EXPECT_TRUE(file.close());
  });
}

TEST(Dedicated, AFullDiskInTheThreadReachesEveryRankWithItsCount) {
  const io::TemporaryFile path;
  comm::run_thread_team(4, [&](comm::Comm& comm) {
    io::FaultyFile file(io::find_mechanism("pwrite")->open({path.path()}).value(),
                        {.at_offset = 2 * kPage + 1024, .write_errno = ENOSPC});
    Pipeline pipeline(comm, file, {});
    const Blocks blocks = pages_of(comm, 6);
    const WriteOutcome out = pipeline.write_all(blocks.request(), dedicated(3));
    EXPECT_EQ(out.agreed, ErrorClass::no_space);
    EXPECT_EQ(out.mine.has_value(), comm.rank() == 3);
    EXPECT_EQ(out.prefix_bytes, (comm.rank() == 0 ? 6 : 2) * 1024) << "rank 0 lies before it";
    EXPECT_EQ(out.written_bytes, comm.rank() == 3 ? 5 * kPage + 1024 : 0);
    EXPECT_TRUE(file.close());
  });
}

TEST(Dedicated, ASyncThatFailsInTheThreadTakesItsPagesOutOfEveryCount) {
  const io::TemporaryFile path;
  comm::run_thread_team(4, [&](comm::Comm& comm) {
    io::FaultyFile file(io::find_mechanism("pwrite")->open({path.path()}).value(),
                        {.sync_errno = EIO, .nth_sync = 2});
    const auto sync =
        io::find_sync_policy("every")->open(file, {.bytes = 2 * kPage, .gate = nullptr});
    Pipeline pipeline(comm, file, {});
    pipeline.set_sync(sync.get());
    const Blocks blocks = pages_of(comm, 6);
    const WriteOutcome out = pipeline.write_all(blocks.request(), dedicated(0));
    EXPECT_EQ(out.agreed, ErrorClass::io);
    EXPECT_EQ(out.prefix_bytes, 2 * 1024);
    EXPECT_EQ(out.written_bytes, comm.rank() == 0 ? 4 * kPage : 0);
    EXPECT_TRUE(file.close());
  });
}

}  // namespace
}  // namespace penstock::exec::behind_test
