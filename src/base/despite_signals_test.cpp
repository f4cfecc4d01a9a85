// Room is had where each call but a short one is interrupted, and lost with it.
#include "base/despite_signals.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace penstock::despite_signals_test {
namespace {

constexpr Extent kWhere{4096, 4096 + 10 * kUninterruptedBytes + 100};

TEST(DespiteSignals, WithoutASignalItIsTakenByOneCall) {
  std::vector<Extent> taken;
  EXPECT_EQ(take_despite_signals(kWhere, [&](Extent e) { return taken.push_back(e), 0; }), 0);
  EXPECT_EQ(taken, std::vector{kWhere});
}

TEST(DespiteSignals, WhereLongCallsAreInterruptedShortOnesTakeAllOfIt) {
  Off end = kWhere.begin;
  int calls = 0;
  const auto take = [&](Extent e) {
    if (e.size() > kUninterruptedBytes || ++calls % 3 == 1) return EINTR;
    EXPECT_EQ(e.begin, end);
    end = e.end;
    return 0;
  };
  EXPECT_EQ(take_despite_signals(kWhere, take), 0);
  EXPECT_EQ(end, kWhere.end);
}

TEST(DespiteSignals, WhatIsRefusedIsNotAskedForAgain) {
  int calls = 0;
  const auto full = [&](Extent) { return ++calls == 1 ? EINTR : ENOSPC; };
  EXPECT_EQ(take_despite_signals(kWhere, full), ENOSPC);
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace penstock::despite_signals_test
