// Numbers that threads tell each other at a board: its only users are processes, of which TSan sees
// nothing.
#include "comm/board.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace penstock::comm::board_test {
namespace {

Result<void> give_way() {
  ::sched_yield();
  return {};
}

// `body(board, rank)` on so many threads with a board of theirs.
void on_board(int ranks, const std::function<void(Board&, int)>& body) {
  const auto segment = make_thread_segment(Board::shape(ranks).bytes);
  ASSERT_TRUE(segment.has_value()) << segment.error().message();
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      Board board(*segment, rank, ranks);
      body(board, rank);
    });
}

// As many bytes of `rank` as are asked for, of which no round has those of another.
std::vector<std::byte> told_by(int rank, int round, size_t bytes) {
  std::vector<std::byte> told(bytes);
  for (size_t i = 0; i < bytes; ++i) told[i] = std::byte(rank * 37 + round * 11 + int(i));
  return told;
}

TEST(Board, EachHearsWhatEachOtherTellsInEveryRound) {
  for (const int ranks : {2, 3, 5})
    on_board(ranks, [&](Board& board, int rank) {
      for (int round = 0; round < 3000; ++round) {
        const size_t bytes = size_t(round) * 8 % (Board::kMostBytes + 8);
        std::vector<int> heard;
        const auto hear = [&](int from, std::span<const std::byte> told) {
          heard.push_back(from);
          EXPECT_TRUE(std::ranges::equal(told, told_by(from, round, bytes))) << "round " << round;
        };
        ASSERT_TRUE(board.meet(told_by(rank, round, bytes), give_way, hear));
        EXPECT_EQ(heard.size(), size_t(ranks) - 1);
        EXPECT_TRUE(std::ranges::is_sorted(heard));
        if ((rank + round) % 7 == 0) ::sched_yield();  // now one is ahead, now another
      }
    });
}

TEST(Board, NobodyLeavesBeforeAllHaveCome) {
  std::atomic<int> come{0};
  on_board(4, [&](Board& board, int) {
    for (int round = 1; round <= 500; ++round) {
      ++come;
      ASSERT_TRUE(board.meet({}, give_way, [](int, std::span<const std::byte>) {}));
      EXPECT_GE(come.load(), 4 * round);
    }
  });
}

TEST(Board, WhoMayNotWaitAnyLongerIsToldWhy) {
  const auto segment = make_thread_segment(Board::shape(2).bytes).value();
  Board board(segment, 0, 2);
  int waits = 0;
  const auto wait = [&]() -> Result<void> {
    if (++waits < 3) return {};
    return fail(ErrorClass::communication, "a wait", "the other one has gone");
  };
  const auto met = board.meet({}, wait, [](int, std::span<const std::byte>) {});
  ASSERT_FALSE(met.has_value());
  EXPECT_EQ(met.error().error_class, ErrorClass::communication);
  EXPECT_EQ(waits, 3);
}

}  // namespace
}  // namespace penstock::comm::board_test
