// The last bytes before offset 2^63, and views that reach beyond it, by every algorithm and
// exchange.
#include "exec/beyond_files.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "comm/thread_comm.hpp"
#include "exec/pipeline.hpp"
#include "exec/read_pipeline.hpp"
#include "io/temporary_file.hpp"

namespace penstock::exec::beyond_files_test {
namespace {

constexpr int64_t kTile = 64;

// Two tiles of which the second lies beyond; each rank behind the one before.
layout::FileView beyond(int rank) {
  const auto tile = layout::LoopTree::resized(layout::LoopTree::bytes(kTile), 0, kLastOff - 1000);
  return layout::FileView::make(kTile * rank + (rank > 0 ? 2000 : 0), 1, *tile).value();
}

template <class Use>
void for_each_policy(Use&& use) {
  for (const plan::Algorithm* a : plan::algorithms())
    for (const char* exchange : {"messages", "shm", "node_leaders"}) {
      if (!a->exchanges && exchange != std::string("messages")) continue;
      SCOPED_TRACE(std::string(a->name) + " + " + exchange);
      use(Pipeline::Policy{a, plan::taken_by(*a, {1, 4096}), nullptr,
                           a->exchanges ? find_exchange(exchange) : nullptr});
    }
}

TEST(BeyondFiles, IsToldToAllRanksAndNoByteOfItIsCounted) {
  for_each_policy([](const Pipeline::Policy& policy) {
    const io::TemporaryFile path;
    std::array<int64_t, 3> counts{};
    comm::run_thread_team(3, [&](comm::Comm& comm) {
      auto file = io::find_mechanism("pwrite")->open({path.path()}).value();
      Pipeline pipeline(comm, *file, {});
      const bool reaches = comm.rank() > 0;  // by its second tile
      const layout::FileView view = reaches ? beyond(comm.rank()) : layout::FileView();
      const std::vector<std::byte> data(size_t(2 * kTile), std::byte(comm.rank() + 1));
      const WriteRequest request{
          &view, {0, 2 * kTile}, data.data(), layout::LoopTree::bytes(1), 2 * kTile};
      EXPECT_EQ(reaches_beyond_files(view, request.range), reaches);
      const WriteOutcome outcome = pipeline.write_all(request, policy);
      EXPECT_EQ(outcome.agreed, ErrorClass::io);
      EXPECT_EQ(outcome.mine.has_value(), reaches);
      counts[size_t(comm.rank())] = outcome.prefix_bytes;
      EXPECT_TRUE(file->close());
    });
    const std::vector<std::byte> contents = path.contents();
    EXPECT_EQ(counts[0], 2 * kTile);
    for (size_t rank = 0; rank < 3; ++rank)  // not more than their first tile, and that or nothing
      EXPECT_EQ(std::ranges::count(contents, std::byte(rank + 1)), counts[rank]);
  });
}

// A file in memory may have bytes there.
class InMemory {
 public:
  InMemory() : fd_(::memfd_create("penstock test", MFD_CLOEXEC)) {}
  ~InMemory() { ::close(fd_); }
  int fd() const { return fd_; }
  std::unique_ptr<io::ReadableFile> reads() const {
    return io::open_again_for_reading(fd_, "memory").value();
  }

 private:
  const int fd_;
};

TEST(BeyondFiles, TheLastBytesBeforeItAreRead) {
  const InMemory file;
  for (const Off at : {kLastOff - (Off{1} << 29), kLastOff - 8}) {
    ASSERT_EQ(::pwrite(file.fd(), "abcdefgh", 8, at), 8);
    for_each_policy([&](const Pipeline::Policy& policy) {
      comm::run_thread_team(2, [&](comm::Comm& comm) {
        const auto reads = file.reads();
        ReadPipeline pipeline(comm, *reads, {});
        std::string memory(4, '?');
        const auto view =
            layout::FileView::make(at + 4 * comm.rank(), 1, layout::LoopTree::bytes(1)).value();
        const ReadOutcome outcome = pipeline.read_all({&view,
                                                       {0, 4},
                                                       reinterpret_cast<std::byte*>(memory.data()),
                                                       layout::LoopTree::bytes(1),
                                                       4,
                                                       ErrorClass::none},
                                                      policy);
        EXPECT_EQ(outcome.agreed, ErrorClass::none);
        EXPECT_EQ(outcome.prefix_bytes, 4);
        EXPECT_EQ(memory, comm.rank() == 0 ? "abcd" : "efgh");
      });
    });
  }
}

// Blocks of `bytes` at the beginning of tiles.
layout::FileView tiles(Off begin, int64_t bytes, int64_t extent) {
  const auto tile = layout::LoopTree::resized(layout::LoopTree::bytes(bytes), 0, extent);
  return layout::FileView::make(begin, 1, *tile).value();
}

// What a rank reads of a file whose byte n is n.
void expect_read(ReadPipeline& pipeline, const Pipeline::Policy& policy,
                 const layout::FileView& view, StreamRange range, int64_t there) {
  std::vector<std::byte> memory(size_t(range.size()), std::byte{0xEE});
  const ReadOutcome outcome = pipeline.read_all(
      {&view, range, memory.data(), layout::LoopTree::bytes(1), range.size(), ErrorClass::none},
      policy);
  EXPECT_EQ(outcome.agreed, ErrorClass::none);
  EXPECT_EQ(outcome.prefix_bytes, there);
  for (int64_t i = 0; i < there; ++i)
    ASSERT_EQ(memory[size_t(i)], std::byte(view.offset_of(range.begin + i)));
}

// The second read brings another filetype, whose description is as long: it is not taken for one
// that nobody has received.
TEST(BeyondFiles, WhatARankWantsThereIsBehindTheEndOfTheFile) {
  const InMemory file;
  for (int n = 0; n < 128; ++n) {
    const auto byte = std::byte(n);
    ASSERT_EQ(::pwrite(file.fd(), &byte, 1, n), 1);
  }
  for_each_policy([&](const Pipeline::Policy& policy) {
    comm::run_thread_team(3, [&](comm::Comm& comm) {
      const auto reads = file.reads();
      ReadPipeline pipeline(comm, *reads, {});
      const bool beyond = comm.rank() == 2;
      const layout::FileView near = tiles(4 * comm.rank(), 4, 8);
      const layout::FileView far = tiles(0, 64, Off{1} << 62);
      for (const StreamRange range : {StreamRange{128, 192}, StreamRange{60, 200}}) {
        const bool reaches = beyond && range.begin == 128;
        expect_read(pipeline, policy, beyond ? far : near, beyond ? range : StreamRange{0, 32},
                    !beyond   ? 32
                    : reaches ? 0
                              : 4);
        expect_read(pipeline, policy, tiles(4 * comm.rank(), 4, 12 + comm.rank()), {0, 16}, 16);
      }
    });
  });
}

}  // namespace
}  // namespace penstock::exec::beyond_files_test
