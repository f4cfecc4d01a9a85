// Collective writes in atomic mode: of a byte that several ranks bring the file has that of one of
// them, and where two of them meet it is the same one everywhere.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "comm/thread_comm.hpp"
#include "engine/file_for_tests.hpp"
#include "engine/method.hpp"
#include "io/temporary_file.hpp"
#include "layout/file_view.hpp"

namespace penstock::engine {
namespace {

constexpr int kRanks = 4;
constexpr int64_t kBytes = 1 << 20;

class AtomicWrites : public testing::TestWithParam<const char*> {
 protected:
  // On every rank, with its file in atomic mode. What the log says at its close.
  FileReport with_ranks(const std::function<void(comm::Comm&, File&)>& body) const {
    OpenInfo info = info_for(file.path());
    info.config.method = *parse_method(GetParam());
    FileReport said;
    comm::run_thread_team(kRanks, [&](comm::Comm& comm) {
      auto f = File::open(comm::borrow(comm), info);
      f->set_atomic(true);
      body(comm, *f);
      FileReport report;
      EXPECT_EQ(f->close(report), ErrorClass::none);
      if (comm.rank() == 0) said = report;
    });
    return said;
  }

  std::string text() const {
    const std::vector<std::byte> all = file.contents();
    return {reinterpret_cast<const char*>(all.data()), all.size()};
  }

  const io::TemporaryFile file;
};

std::vector<char> letters(int rank, int64_t bytes) {
  return std::vector<char>(size_t(bytes), char('a' + rank));
}

// A block in every so many bytes.
layout::FileView strided(int64_t block, int64_t every, int64_t begin) {
  auto tree = layout::LoopTree::resized(layout::LoopTree::bytes(block), 0, every);
  return *layout::FileView::make(begin, 1, *std::move(tree));
}

TEST_P(AtomicWrites, OfOneRangeAreOneRanks) {
  with_ranks([&](comm::Comm& comm, File& f) {
    ASSERT_TRUE(f.served());
    EXPECT_FALSE(f.serves_independent());
    const std::vector<char> data = letters(comm.rank(), kBytes);
    for (int turn = 0; turn < 10; ++turn) {
      EXPECT_EQ(f.write_all(write_of(data, 0)).bytes, kBytes);
      const std::string got = text();
      EXPECT_EQ(got, std::string(size_t(kBytes), got[0]));
      EXPECT_TRUE(comm.barrier());
    }
  });
}

// Ranks 0 and 2 write every other page, ranks 1 and 3 all of them.
TEST_P(AtomicWrites, OfPiecesAreOneRanksWhereverTheyMeet) {
  with_ranks([&](comm::Comm& comm, File& f) {
    const bool in_pieces = comm.rank() % 2 == 0;
    if (in_pieces) f.set_view(strided(4096, 8192, 4096), "");
    if (!in_pieces) f.set_view({}, "");
    const std::vector<char> data = letters(comm.rank(), in_pieces ? kBytes / 2 : kBytes);
    EXPECT_EQ(f.write_all(write_of(data, 0)).agreed, ErrorClass::none);
    const std::string got = text();
    ASSERT_EQ(int64_t(got.size()), kBytes);
    for (int64_t at = 0; at < kBytes; at += 4096) {
      const size_t like = at % 8192 == 0 ? 0 : 4096;
      ASSERT_EQ(got.substr(size_t(at), 4096), std::string(4096, got[like])) << at;
    }
    EXPECT_TRUE(comm.barrier());
  });
}

// Where nobody can meet anybody, the method is the one that was asked for.
TEST_P(AtomicWrites, OfOtherPlacesGoAsTheyGo) {
  const FileReport report = with_ranks([&](comm::Comm& comm, File& f) {
    const std::vector<char> data = letters(comm.rank(), 5000);
    EXPECT_EQ(f.write_all(write_of(data, comm.rank() * 5000)).agreed, ErrorClass::none);
    f.set_atomic(false);
    EXPECT_TRUE(f.serves_independent());
  });
  EXPECT_TRUE(report.degraded.empty());
  EXPECT_EQ(text(), std::string(5000, 'a') + std::string(5000, 'b') + std::string(5000, 'c') +
                        std::string(5000, 'd'));
}

// What a rank that fails would have written nobody is told.
TEST_P(AtomicWrites, GoOneByOneWhereARankFails) {
  const FileReport report = with_ranks([&](comm::Comm& comm, File& f) {
    const bool fails = comm.rank() == 1;
    if (fails) f.set_view(strided(4096, int64_t{1} << 62, 0), "");  // the third is beyond all files
    if (!fails) f.set_view({}, "");
    const std::vector<char> data = letters(comm.rank(), comm.rank() < 2 ? 3 * 4096 : 0);
    EXPECT_NE(f.write_all(write_of(data, 0)).agreed, ErrorClass::none);
  });
  EXPECT_EQ(report.algorithms.count("individual"), 1u);
  EXPECT_GT(report.sum.messages, 0) << "by which ranks take turns";
}

INSTANTIATE_TEST_SUITE_P(Methods, AtomicWrites,
                         testing::Values("auto", "two_phase(cycle=64KiB) + shm",
                                         "two_phase(cycle=64KiB) + messages", "individual"));

}  // namespace
}  // namespace penstock::engine
