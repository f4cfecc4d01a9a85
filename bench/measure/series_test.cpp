// Bins keep every byte, and the device never has more than was written.
#include "series.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace penstock::measure::series_test {
namespace {

using Values = std::vector<int64_t>;

TEST(Bins, ACallsBytesAreSpreadOverItsTime) {
  Bins bins(0.1);
  bins.add({0.05, 0.1}, 100);
  EXPECT_EQ(bins.values(3), (Values{50, 50, 0}));
}

TEST(Bins, ACallWithinABinStaysThere) {
  Bins bins(0.1);
  bins.add({0.31, 0.01}, 7);
  EXPECT_EQ(bins.values(4), (Values{0, 0, 0, 7}));
}

TEST(Bins, NoByteIsLostByRounding) {
  Bins bins(0.05);
  int64_t total = 0;
  for (int i = 0; i < 1000; ++i) {
    bins.add({i * 0.0123, 0.31}, 1'000'003 + i);
    total += 1'000'003 + i;
  }
  const Values values = bins.values(100);
  EXPECT_EQ(std::accumulate(values.begin(), values.end(), int64_t{0}), total);
}

TEST(Bins, WhatComesAfterTheLastBinIsInTheLast) {
  Bins bins(0.1);
  bins.add({5, 0}, 9);
  EXPECT_EQ(bins.values(2), (Values{0, 9}));
}

TEST(Readings, BetweenTwoLiesAStraightLine) {
  const std::vector<Reading> readings = {{0, 0}, {1, 100}, {3, 500}};
  EXPECT_DOUBLE_EQ(at(readings, 0.5), 50);
  EXPECT_DOUBLE_EQ(at(readings, 2), 300);
  EXPECT_DOUBLE_EQ(at(readings, -1), 0);
  EXPECT_DOUBLE_EQ(at(readings, 9), 500);
  EXPECT_DOUBLE_EQ(at({}, 1), 0);
}

TEST(Device, HasWhatWasWrittenAndIsNotDirtyAnyMore) {
  EXPECT_EQ(reached_device(Values{100, 100, 0, 0}, Values{80, 150, 60, 0}),
            (Values{20, 30, 90, 60}));
}

TEST(Device, NeverTakesBytesBackAndHasThemAllInTheEnd) {
  const Values device = reached_device(Values{100, 0, 0}, Values{10, 90, 5});
  for (const int64_t bytes : device) EXPECT_GE(bytes, 0);
  EXPECT_EQ(std::accumulate(device.begin(), device.end(), int64_t{0}), 100);
}

TEST(Device, ACounterThatOthersMoveTooIsCutAtOurBytes) {
  const Values device = counted_by_device(Values{40, 300, 310}, 100);
  EXPECT_EQ(device, (Values{40, 60, 0}));
}

}  // namespace
}  // namespace penstock::measure::series_test
