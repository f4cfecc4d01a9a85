#include "exec/exchange.hpp"

#include <gtest/gtest.h>

#include "exec/cycle.hpp"

namespace penstock::exec::exchange_test {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;
const plan::Team kOneNode{4, 1, 2}, kTwoNodes{4, 2, 2}, kOneRank{1, 1, 2};

TEST(Pieces, EndWhereOffsetsEnd) {
  constexpr StreamRange kRange{kLastOff - kMessageBytes - 10, kLastOff};
  Pieces pieces(kRange);
  EXPECT_EQ(pieces.pop().end, kRange.begin + kMessageBytes);
  EXPECT_EQ(pieces.pop().end, kLastOff);
  EXPECT_TRUE(pieces.empty());
}

// Small pages suit where all ranks of the job fill them in place, and nowhere else.
TEST(CycleFor, IsSmallWhereOneNodeSharesThePages) {
  for (const Exchange* e : exchanges())
    for (const plan::Algorithm* a : plan::algorithms()) {
      const bool fills_in_place = e->shares_pages && a->exchanges && !a->scatters;
      EXPECT_EQ(cycle_for(0, *a, e, kOneNode), fills_in_place ? kMebibyte : 0)
          << a->name << " + " << e->name;
    }
  // So that the loop has met both kinds.
  EXPECT_EQ(cycle_for(0, *plan::find_algorithm("two_phase"), find_exchange("shm"), kOneNode),
            kMebibyte);
  EXPECT_EQ(
      cycle_for(0, *plan::find_algorithm("static_segmentation"), find_exchange("shm"), kOneNode),
      0);
}

TEST(CycleFor, IsTheAlgorithmsOwnOnSeveralNodesAndForOneRank) {
  for (const Exchange* e : exchanges())
    for (const plan::Algorithm* a : plan::algorithms())
      for (const plan::Team& team : {kTwoNodes, kOneRank})
        EXPECT_EQ(cycle_for(0, *a, e, team), 0) << a->name << " + " << e->name;
}

TEST(CycleFor, IsTheAlgorithmsOwnWhereNoExchangeIsNamed) {
  for (const plan::Algorithm* a : plan::algorithms())
    EXPECT_EQ(cycle_for(0, *a, nullptr, kOneNode), 0) << a->name;
}

TEST(CycleFor, IsWhatWasAskedForWhereItWas) {
  for (const Exchange* e : exchanges())
    for (const plan::Algorithm* a : plan::algorithms())
      for (const plan::Team& team : {kOneNode, kTwoNodes, kOneRank})
        EXPECT_EQ(cycle_for(12345, *a, e, team), 12345) << a->name << " + " << e->name;
}

}  // namespace
}  // namespace penstock::exec::exchange_test
