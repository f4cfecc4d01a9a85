#include "base/ticks.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace penstock::ticks_test {
namespace {

// A look may lose its core at the worst of places: then it is another's turn.
constexpr int kTries = 20;
constexpr double kExact_s = 1e-3;

TEST(Ticks, AMomentIsWhereTheClockHasIt) {
  bool found = false;
  for (int i = 0; i < kTries && !found; ++i) {
    const double before_s = now_s();
    const Ticks when = ticks();
    const double after_s = now_s();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const double time_s = time_of(when);
    found = before_s - kExact_s <= time_s && time_s <= after_s + kExact_s;
  }
  EXPECT_TRUE(found);
}

TEST(Ticks, ADurationIsAsLongAsByTheClock) {
  bool found = false;
  for (int i = 0; i < kTries && !found; ++i) {
    const double begin_s = now_s();
    const Ticks begin = ticks();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const double clock_s = now_s() - begin_s;
    const double counter_s = seconds_of(ticks() - begin);
    found = counter_s >= clock_s * 0.99 && counter_s <= clock_s * 1.01 + kExact_s;
  }
  EXPECT_TRUE(found);
}

TEST(Ticks, AWatchAddsWhatThePiecesTook) {
  bool found = false;
  for (int i = 0; i < kTries && !found; ++i) {
    double sum_s = 1;
    const double begin_s = now_s();
    for (int piece = 0; piece < 3; ++piece) {
      const TickWatch watch(sum_s);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    const double clock_s = now_s() - begin_s;
    found = sum_s - 1 >= clock_s * 0.95 && sum_s - 1 <= clock_s * 1.01 + kExact_s;
  }
  EXPECT_TRUE(found);
}

TEST(Ticks, DoNotDecrease) {
  Ticks last = ticks();
  for (int i = 0; i < 1000; ++i) {
    const Ticks now = ticks();
    EXPECT_GE(now, last);
    last = now;
  }
}

}  // namespace
}  // namespace penstock::ticks_test
