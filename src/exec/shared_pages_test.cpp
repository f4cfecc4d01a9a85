// The exchange through shared memory: what it copies and sends, counted, and what happens where
// there is no memory to share.
#include <gtest/gtest.h>

#include "comm/borrow.hpp"
#include "comm/thread_comm.hpp"
#include "exec/blocks.hpp"
#include "exec/pipeline.hpp"
#include "io/faulty.hpp"
#include "io/forwarding_file.hpp"
#include "io/temporary_file.hpp"

namespace penstock::exec::shared_pages_test {
namespace {

constexpr int64_t kBlock = 512;
constexpr int64_t kBlocks = 64;  // of each rank, interleaved with those of the others

const Exchange* shm() { return find_exchange("shm"); }

struct Sums {
  std::atomic<int64_t> shared_bytes = 0, messages = 0, written = 0;
  std::atomic<int> degraded = 0, bad = 0;
};

template <class Open>
void write_twice(comm::Comm& comm, const Open& open, const Pipeline::Policy& policy, Sums& sums) {
  std::unique_ptr<io::MechanismFile> file = open();
  Pipeline pipeline(comm, *file, {});
  const Blocks mine = dealt(comm, kBlock, kBlocks);
  for (int again = 0; again < 2; ++again) {
    const WriteOutcome out = pipeline.write_all(mine.request(), policy);
    if (out.agreed != ErrorClass::none) ++sums.bad;
    sums.written += out.written_bytes;
    if (!pipeline.degraded().empty()) ++sums.degraded;
  }
  const Traffic& t = pipeline.spent_together().traffic;
  sums.shared_bytes += t.shared_bytes;
  sums.messages += t.messages;
  EXPECT_TRUE(file->close());
}

Pipeline::Policy two_phase(int writers, int64_t cycle_bytes = 16384) {
  return {plan::find_algorithm("two_phase"), {writers, cycle_bytes}, nullptr, shm()};
}

class Ranks : public testing::TestWithParam<int> {};

TEST_P(Ranks, OfOneNodeCopyEachByteOnceAndSendNoMessage) {
  const int ranks = GetParam();
  const io::TemporaryFile path;
  Sums sums;
  const auto open = [&] { return io::find_mechanism("pwrite")->open({path.path()}).value(); };
  comm::run_thread_team(ranks,
                        [&](comm::Comm& comm) { write_twice(comm, open, two_phase(1), sums); },
                        {.used_segments = true});
  const int64_t all = 2 * kBlock * kBlocks * ranks;
  EXPECT_EQ(sums.bad, 0);
  EXPECT_EQ(sums.degraded, 0);
  EXPECT_EQ(sums.messages, 0);
  EXPECT_EQ(sums.written, all);
  EXPECT_EQ(sums.shared_bytes, all - all / ranks) << "all but the writer's own";
  expect_dealt(path.contents(), ranks, kBlock, kBlocks);
}

TEST_P(Ranks, OfSeveralNodesSendMessagesBetweenNodesOnly) {
  const int ranks = GetParam(), nodes = 2;
  const io::TemporaryFile path;
  Sums sums;
  const auto open = [&] { return io::find_mechanism("pwrite")->open({path.path()}).value(); };
  comm::run_thread_team(ranks,
                        [&](comm::Comm& comm) { write_twice(comm, open, two_phase(2), sums); },
                        {.nodes = nodes});
  EXPECT_EQ(sums.bad, 0);
  EXPECT_EQ(sums.degraded, 0);
  EXPECT_GT(sums.messages, 0);
  if (ranks > 2) {
    EXPECT_GT(sums.shared_bytes, 0);
  }
  expect_dealt(path.contents(), ranks, kBlock, kBlocks);
}

INSTANTIATE_TEST_SUITE_P(Many, Ranks, testing::Values(2, 3, 4, 8, 64));

// A node that has no memory to share.
class Poor final : public comm::Borrowed {
 public:
  explicit Poor(comm::Comm& owner) : Borrowed(owner), owner_(owner) {}
  explicit Poor(std::unique_ptr<comm::Comm> owned) : Borrowed(*owned), owner_(*owned) {
    owned_ = std::move(owned);
  }
  Result<std::shared_ptr<comm::SharedSegment>> shared_segment(const comm::SegmentShape&) override {
    return os_error("posix_fallocate", "the test", ENOSPC);
  }
  Result<std::unique_ptr<comm::Comm>> split_by_node() override {
    return owner_.split_by_node().map([](auto&& node) -> std::unique_ptr<comm::Comm> {
      return std::make_unique<Poor>(std::move(node));
    });
  }

 private:
  std::unique_ptr<comm::Comm> owned_;
  comm::Comm& owner_;
};

TEST(SharedPages, WithoutMemoryToShareMessagesDoItAndThatIsSaid) {
  const io::TemporaryFile path;
  Sums sums;
  const auto open = [&] { return io::find_mechanism("pwrite")->open({path.path()}).value(); };
  comm::run_thread_team(3, [&](comm::Comm& comm) {
    Poor poor(comm);
    write_twice(poor, open, two_phase(2), sums);
  });
  EXPECT_EQ(sums.bad, 0);
  EXPECT_EQ(sums.degraded, 6) << "three ranks, twice";
  EXPECT_EQ(sums.shared_bytes, 0);
  EXPECT_GT(sums.messages, 0);
  expect_dealt(path.contents(), 3, kBlock, kBlocks);
}

// A file whose pages lie where the mechanism wants them.
class OwnMemory final : public io::ForwardingFile {
 public:
  using ForwardingFile::ForwardingFile;
  Result<void> use_memory(std::span<const std::span<std::byte>> buffers) override {
    return MechanismFile::use_memory(buffers);  // which refuses it
  }
};

TEST(SharedPages, AMechanismWithItsOwnMemoryOnOneRankSpoilsItForTheNode) {
  const io::TemporaryFile path;
  Sums sums;
  std::atomic<int> opened = 0;
  const auto open = [&]() -> std::unique_ptr<io::MechanismFile> {
    auto file = io::find_mechanism("pwrite")->open({path.path()}).value();
    if (opened++ != 1) return file;
    return std::make_unique<OwnMemory>(std::move(file));
  };
  comm::run_thread_team(4, [&](comm::Comm& comm) { write_twice(comm, open, two_phase(4), sums); });
  EXPECT_EQ(sums.bad, 0);
  EXPECT_EQ(sums.degraded, 8);
  EXPECT_EQ(sums.shared_bytes, 0);
  expect_dealt(path.contents(), 4, kBlock, kBlocks);
}

// An asynchronous file whose queue is lost while the first page is under way.
class LosingFile final : public io::ForwardingFile {
 public:
  using ForwardingFile::ForwardingFile;
  Result<void> use_memory(std::span<const std::span<std::byte>> buffers) override {
    given_ = !buffers.empty();
    return inner().use_memory(buffers);
  }
  Result<io::Lease> lease(Extent where) override {
    if (lost_ && given_) return fail(ErrorClass::io, "lease", "the memory that was given is lost");
    return inner().lease(where);
  }
  std::optional<io::Fault> reap() override {
    lost_ = lost_ || given_;
    return inner().reap();
  }
  bool has_lost_memory() override { return lost_; }

 private:
  bool given_ = false, lost_ = false;
};

TEST(SharedPages, OfAWriterThatLosesItsMemoryAreNotSharedInLaterCalls) {
  const io::TemporaryFile path;
  comm::run_thread_team(4, [&](comm::Comm& comm) {
    auto plain = io::find_mechanism("pwrite")->open({path.path()}).value();
    auto file = comm.rank() == 0 ? std::make_unique<LosingFile>(std::move(plain)) : nullptr;
    Pipeline pipeline(comm, file ? static_cast<io::MechanismFile&>(*file) : *plain, {});
    const Blocks mine = dealt(comm, kBlock, kBlocks);
    for (int call = 0; call < 3; ++call) {
      EXPECT_EQ(pipeline.write_all(mine.request(), two_phase(2, 65536)).agreed, ErrorClass::none);
      EXPECT_EQ(pipeline.degraded().empty(), call == 0);
    }
    EXPECT_GT(pipeline.spent_together().traffic.shared_bytes, 0);
    EXPECT_TRUE(file ? file->close() : plain->close());
  });
  expect_dealt(path.contents(), 4, kBlock, kBlocks);
}

// Pages of one size, then larger ones, then messages, then shared again.
TEST(SharedPages, MayComeAndGoAndGrowFromCallToCall) {
  const io::TemporaryFile path;
  comm::run_thread_team(3, [&](comm::Comm& comm) {
    auto file = io::find_mechanism("pwrite")->open({path.path()}).value();
    Pipeline pipeline(comm, *file, {});
    const Blocks mine = dealt(comm, kBlock, kBlocks);
    Pipeline::Policy messages = two_phase(3, 65536);
    messages.exchange = find_exchange("messages");
    for (const Pipeline::Policy& p : {two_phase(2, 4096), two_phase(3, 8192), messages,
                                      two_phase(1, 65536), two_phase(2, 4096)})
      EXPECT_EQ(pipeline.write_all(mine.request(), p).agreed, ErrorClass::none);
    EXPECT_TRUE(file->close());
  });
  expect_dealt(path.contents(), 3, kBlock, kBlocks);
}

}  // namespace
}  // namespace penstock::exec::shared_pages_test
