// A rank that writes alone: how many writes its bytes take, with a mechanism that gathers memory
// and with one that does not, and what is true after a fault among the pieces.
#include "exec/alone.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "comm/thread_comm.hpp"
#include "io/faulty.hpp"
#include "io/temporary_file.hpp"

namespace penstock::exec::alone_test {
namespace {

using layout::LoopTree;

// `count` pieces of `bytes` each, `stride` apart in memory.
struct Pieces {
  Pieces(int64_t bytes, int64_t stride, int64_t count)
      : type(*LoopTree::resized(LoopTree::bytes(bytes), 0, stride)),
        count(count),
        size(bytes * count),
        memory(size_t(stride * count)) {
    for (int64_t p = 0; p < size; ++p) memory[size_t(p / bytes * stride + p % bytes)] = value(p);
  }
  // Of a stream byte; never 0, which is what memory between the pieces and holes hold.
  static std::byte value(int64_t position) { return std::byte(1 + position * 31 % 251); }

  LoopTree type;
  int64_t count, size;
  std::vector<std::byte> memory;
};

layout::FileView blocks_of(int64_t bytes, int64_t stride) {
  return *layout::FileView::make(0, 1, *LoopTree::resized(LoopTree::bytes(bytes), 0, stride));
}

std::vector<std::byte> expected(const layout::FileView& view, const Pieces& pieces) {
  std::vector<std::byte> file(size_t(view.offset_of(pieces.size - 1) + 1));
  for (int64_t p = 0; p < pieces.size; ++p) file[size_t(view.offset_of(p))] = Pieces::value(p);
  return file;
}

struct Wrote {
  WriteOutcome outcome;
  int64_t writes = 0;
};

Wrote write(io::MechanismFile& file, const layout::FileView& view, const Pieces& pieces) {
  Wrote wrote;
  comm::run_thread_team(1, [&](comm::Comm& comm) {
    Pipeline pipeline(comm, file, {});
    wrote.outcome = pipeline.write_alone({&view,
                                          {0, pieces.size},
                                          pieces.memory.data(),
                                          pieces.type,
                                          pieces.count,
                                          ErrorClass::none});
    wrote.writes = pipeline.spent_alone().traffic.writes;
  });
  return wrote;
}

// How many writes it takes; the bytes are checked.
int64_t writes_of(const char* mechanism, const layout::FileView& view, const Pieces& pieces) {
  const io::TemporaryFile path;
  auto file = io::find_mechanism(mechanism)->open({.path = path.path()}).value();
  const Wrote wrote = write(*file, view, pieces);
  EXPECT_EQ(wrote.outcome.prefix_bytes, pieces.size);
  EXPECT_TRUE(file->close());
  EXPECT_TRUE(path.contents() == expected(view, pieces));
  return wrote.writes;
}

TEST(Alone, LargePiecesOfOneFileExtentAreOneWriteWhereTheyCanBeGathered) {
  const Pieces pieces(4096, 5000, 768);
  EXPECT_EQ(writes_of("pwritev", {}, pieces), 1);
  EXPECT_EQ(writes_of("pwrite", {}, pieces), 3) << "packed, 1 MiB at a time";
}

TEST(Alone, ACallCarriesNoMorePiecesThanTheKernelTakes) {
  EXPECT_EQ(writes_of("pwritev", {}, Pieces(1024, 1100, 2000)), 2);
}

TEST(Alone, CrumbsArePackedBySameMeasureAsWithoutGathering) {
  const Pieces pieces(8, 32, 300'000);
  EXPECT_EQ(writes_of("pwritev", {}, pieces), 3);
  EXPECT_EQ(writes_of("pwrite", {}, pieces), 3);
}

TEST(Alone, EachBlockOfTheFileIsOneWriteWhereverPiecesEnd) {
  const Pieces pieces(3000, 3500, 512);  // 187.5 blocks
  EXPECT_EQ(writes_of("pwritev", blocks_of(8192, 12'288), pieces), 188);
  EXPECT_EQ(writes_of("pwrite", blocks_of(8192, 12'288), pieces), 188);
}

TEST(Alone, SmallBlocksOfTheFileArePackedTogetherAndWrittenOneByOne) {
  const Pieces pieces(4096, 5000, 600);
  EXPECT_EQ(writes_of("pwritev", blocks_of(512, 1024), pieces), 4800);
}

TEST(Alone, LargePiecesAndCrumbsMayTakeTurns) {
  const LoopTree::Block blocks[] = {{0, 40'000}, {50'000, 8}, {50'100, 8}, {50'200, 8}};
  Pieces pieces(40'024, 60'000, 50);
  pieces.type = *LoopTree::resized(*LoopTree::indexed(blocks, LoopTree::bytes(1)), 0, 60'000);
  std::fill(pieces.memory.begin(), pieces.memory.end(), std::byte{0});
  int64_t position = 0;
  for (Off copy = 0; copy < 50; ++copy)
    for (const LoopTree::Block& b : blocks)
      for (int64_t i = 0; i < b.count; ++i, ++position)
        pieces.memory[size_t(copy * 60'000 + b.displacement + i)] = Pieces::value(position);
  ASSERT_EQ(position, pieces.size);
  EXPECT_EQ(writes_of("pwritev", {}, pieces), 1);
}

// --- A fault among the pieces

// Gathers in name only: each piece is a write that can be made to fail.
class GatheringFile final : public io::MechanismFile {
 public:
  GatheringFile(const std::string& path, const io::FaultPlan& plan)
      : inner_(io::find_mechanism("pwrite")->open({.path = path}).value(), plan) {}

  Result<io::Lease> lease(Extent where) override { return inner_.lease(where); }
  void submit(io::Lease lease, std::span<const Extent> dirty) override {
    inner_.submit(lease, dirty);
  }
  std::optional<io::Fault> reap() override { return inner_.reap(); }
  int slots() const noexcept override { return inner_.slots(); }
  std::optional<io::Fault> write(std::span<const std::byte> bytes, Off offset) override {
    return inner_.write(bytes, offset);
  }
  bool gathers() const noexcept override { return true; }
  Result<void> sync(io::SyncKind kind) override { return inner_.sync(kind); }
  Result<void> close() override { return inner_.close(); }
  int fd() const noexcept override { return inner_.fd(); }

 private:
  io::FaultyFile inner_;
};

TEST(Alone, AFaultAmongGatheredPiecesNamesItsExactPrefix) {
  const io::TemporaryFile path;
  GatheringFile file(path.path(), {.at_offset = 70'001, .write_errno = ENOSPC});
  const Pieces pieces(2048, 3000, 100);
  const Wrote wrote = write(file, {}, pieces);
  EXPECT_EQ(wrote.outcome.agreed, ErrorClass::no_space);
  ASSERT_TRUE(wrote.outcome.mine);
  EXPECT_EQ(wrote.outcome.prefix_bytes, 70'001);
  EXPECT_EQ(wrote.outcome.written_bytes, 70'001);
  std::vector<std::byte> prefix = expected({}, pieces);
  prefix.resize(70'001);
  EXPECT_EQ(path.contents(), prefix);
  EXPECT_TRUE(file.close());
}

}  // namespace
}  // namespace penstock::exec::alone_test
