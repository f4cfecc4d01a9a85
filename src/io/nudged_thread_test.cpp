// A thread that works when it is nudged, and is none while nobody nudges it.
#include "io/nudged_thread.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "io/eventually.hpp"

namespace penstock::io::nudged_thread_test {
namespace {

std::atomic<int> started = 0, ended = 0;
void* (*inner)(void*) = nullptr;

void* counted(void* self) {
  void* const result = inner(self);
  ++ended;
  return result;
}

Result<pthread_t> start_counted(void* (*run)(void*), void* self) {
  inner = run;
  ++started;
  return start_io_thread(&counted, self);
}

TEST(NudgedThreads, RestWhereNobodyNudgesThemAndComeAgain) {
  const int before = ended;
  std::atomic<int> worked = 0;
  NudgedThread thread([&] { ++worked; }, &start_counted);
  for (int time = 1; time <= 2; ++time) {
    EXPECT_TRUE(thread.nudge());
    EXPECT_TRUE(eventually([&] { return worked == time && ended - before == time; }));
    EXPECT_EQ(started - before, time);
  }
  EXPECT_TRUE(thread.nudge());
  thread.stop();
  EXPECT_EQ(ended - before, 3);
  EXPECT_FALSE(thread.nudge());
}

TEST(NudgedThreads, AreStoppedForGoodWhileTheyRest) {
  const int before = ended;
  NudgedThread thread([] {}, &start_counted);
  EXPECT_TRUE(thread.nudge());
  EXPECT_TRUE(eventually([&] { return ended == before + 1; }));
  thread.stop();
  EXPECT_FALSE(thread.nudge());
}

}  // namespace
}  // namespace penstock::io::nudged_thread_test
