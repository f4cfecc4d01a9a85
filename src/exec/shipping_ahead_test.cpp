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
  EXPECT_LT(writes, 4 * kPages) << "a page that leaves in parts takes " << kPiecesOfEach
                                << " writes and more";
  std::vector<std::byte> expected(kPages * kPage);
  for (size_t i = 0; i < expected.size(); ++i)
    expected[i] = std::byte('a' + i / size_t(kPiece) % kRanks);
  EXPECT_TRUE(path.holds(expected));
}

}  // namespace
}  // namespace penstock::exec::shipping_ahead_test
