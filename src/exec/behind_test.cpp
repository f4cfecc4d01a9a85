// A page is filled while the one before it is written. dedicated_writer: a thread writes and syncs,
// while its rank and the others fill the next page. Shared pages: others fill while the rank
// writes. That no byte differs and every count is true is the conformance and the truth suites' to
// say.
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "comm/borrow.hpp"
#include "comm/thread_comm.hpp"
#include "exec/blocks.hpp"
#include "exec/pipeline.hpp"
#include "io/eventually.hpp"
#include "io/faulty.hpp"
#include "io/forwarding_file.hpp"
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

// --- Shared pages: the writer opens its next page before it writes one ---

constexpr int kSharing = 4;  // ranks and pages

// Which ranks have done all they do in cycles, in a call that is watched.
using Done = std::array<std::atomic<bool>, kSharing>;

// A rank meets the others once more when its cycles are over.
class Leaving final : public comm::Borrowed {
 public:
  Leaving(comm::Comm& owner, Done& done) : Borrowed(owner), done_(done) {}
  Result<void> all_max(std::span<int64_t> values) override {
    if (watched) done_[size_t(rank())] = true;
    return Borrowed::all_max(values);
  }
  bool watched = false;

 private:
  Done& done_;
};

// The write of a page waits until the rank that brings nothing behind the next page is done.
class Waiting final : public io::ForwardingFile {
 public:
  Waiting(std::unique_ptr<io::MechanismFile> inner, Done& done)
      : ForwardingFile(std::move(inner)), done_(done) {}
  void submit(io::Lease lease, std::span<const Extent> dirty) override {
    const auto next = size_t(lease.where.begin / kPage + 1);
    if (watched && next < kSharing && io::eventually([&] { return done_[next].load(); })) ++ahead;
    ForwardingFile::submit(lease, dirty);
  }
  bool watched = false;
  int ahead = 0;

 private:
  Done& done_;
};

// Rank 0 writes, and brings a block of every page; each other rank those of as many as its number
// says, and one more.
Blocks up_to_own_page(const comm::Comm& comm) {
  constexpr int64_t kBlock = kPage / kSharing;
  const int64_t pages = comm.rank() == 0 ? kSharing : comm.rank() + 1;
  return {comm.rank() * kBlock, kBlock, kPage, pages, value_of(comm.rank())};
}

class Shared : public testing::TestWithParam<const Exchange*> {};

TEST_P(Shared, TheNextPageIsFilledWhileOneIsWritten) {
  const io::TemporaryFile path;
  Done done{};
  comm::run_thread_team(kSharing, [&](comm::Comm& owner) {
    Leaving comm(owner, done);
    Waiting file(io::find_mechanism("pwrite")->open({path.path()}).value(), done);
    Pipeline pipeline(comm, file, {});
    const Blocks blocks = up_to_own_page(comm);
    const Pipeline::Policy policy{
        plan::find_algorithm("two_phase"), {1, kPage}, nullptr, GetParam()};
    for (const bool again : {false, true}) {  // by then nothing is made together any more
      comm.watched = file.watched = again;
      EXPECT_EQ(pipeline.write_all(blocks.request(), policy).agreed, ErrorClass::none);
    }
    EXPECT_EQ(file.ahead, comm.rank() == 0 ? kSharing - 1 : 0);
    EXPECT_EQ(pipeline.degraded(), "");
    EXPECT_TRUE(file.close());
  });
}

std::vector<const Exchange*> that_share_pages() {
  std::vector<const Exchange*> sharing;
  std::ranges::copy_if(exchanges(), std::back_inserter(sharing), &Exchange::shares_pages);
  return sharing;
}

INSTANTIATE_TEST_SUITE_P(Ahead, Shared, testing::ValuesIn(that_share_pages()),
                         [](const auto& e) { return std::string(e.param->name); });

}  // namespace
}  // namespace penstock::exec::behind_test
