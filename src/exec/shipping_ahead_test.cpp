// A rank that is ahead of those of other nodes, and pages that it would have to take from them.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "comm/thread_comm.hpp"
#include "exec/shipping_for_tests.hpp"
#include "io/temporary_file.hpp"

namespace penstock::exec::shipping_ahead_test {
namespace {

constexpr int kRanks = 2, kPages = 120;
constexpr int64_t kPiece = 64, kPiecesOfEach = kPage / kPiece / kRanks;

// The ranks' pieces by turns. The second rank takes its time for each page.
int64_t writes_of_uneven_ranks(const std::string& path) {
  const WriteBehindShape shape{.page_bytes = kPage,
                               .limit_bytes_per_rank = 16 * kPage,
                               .progress = Progress::thread,
                               .load_bytes = kLoad};
  std::atomic<int64_t> writes = 0;
  comm::run_thread_team(kRanks,
                        [&](comm::Comm& comm) {
                          Rank rank(comm, path, shape);
                          const std::vector<std::byte> piece(kPiece, std::byte('a' + comm.rank()));
                          for (int64_t i = 0; i < kPages * kPiecesOfEach; ++i) {
                            if (comm.rank() == 1 && i % kPiecesOfEach == 0)
                              std::this_thread::sleep_for(std::chrono::milliseconds(1));
                            rank.write(piece, (kRanks * i + comm.rank()) * kPiece);
                          }
                          rank.behind->flush_together(rank.target);
                          writes += rank.traffic().writes;
                          EXPECT_TRUE(comm.barrier());
                        },
                        {.nodes = 2, .used_segments = true});
  return writes;
}

TEST(ARankAhead, LetsThoseOfOtherNodesCompleteItsPages) {
  const io::TemporaryFile path;
  const int64_t writes = writes_of_uneven_ranks(path.path());
  EXPECT_LT(writes, kPages * kPiecesOfEach) << "in parts, a page takes twice as many writes";
  std::vector<std::byte> expected(kPages * kPage);
  for (size_t i = 0; i < expected.size(); ++i)
    expected[i] = std::byte('a' + i / size_t(kPiece) % kRanks);
  EXPECT_TRUE(path.holds(expected));
}

// Pages that nobody completes are not waited for again and again, and where there is room none is.
TEST(ARankAhead, WaitsSeldomWhereNoPageIsEverComplete) {
  const io::TemporaryFile path;
  const WriteBehindShape shape{.page_bytes = kPage,
                               .limit_bytes_per_rank = 16 * kPage,
                               .progress = Progress::thread,
                               .load_bytes = kLoad};
  comm::run_thread_team(kRanks,
                        [&](comm::Comm& comm) {
                          Rank rank(comm, path.path(), shape);
                          const std::vector<std::byte> some(1024, std::byte('x'));
                          const auto write = [&](int64_t i, Returns returns) {
                            rank.write(some, 2 * (2 * i + comm.rank()) * kPage + i % 2 * kPage,
                                       returns);
                          };
                          write(0, Returns::soon);
                          EXPECT_EQ(rank.behind->waited(), 0) << "there is room";
                          for (int64_t i = 1; i < 100; ++i) write(i, Returns::at_once);
                          EXPECT_EQ(rank.behind->waited(), 0) << "a non-blocking write";
                          for (int64_t i = 100; i < 400; ++i) write(i, Returns::soon);
                          EXPECT_LE(rank.behind->waited(), 8) << "after 1, 2 + 1, 4 + 1, ... pages";
                          rank.behind->flush_together(rank.target);
                        },
                        {.nodes = 2, .used_segments = true});
}

}  // namespace
}  // namespace penstock::exec::shipping_ahead_test
