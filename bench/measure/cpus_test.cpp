// What the kernel tells of the CPUs.
#include "cpus.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <sstream>

namespace penstock::measure::cpus_test {
namespace {

TEST(CpuTimes, WaitingForADeviceIsNotBusyAndStolenTimeIsNobodys) {
  std::istringstream text("cpu  100 20 30 400 50 6 7 1000 0 0\ncpu0 1 1 1 1\n");
  const auto times = cpu_times_of(text);
  ASSERT_TRUE(times);
  EXPECT_EQ(times->busy_ticks, 163);
  EXPECT_EQ(times->total_ticks, 613);
  EXPECT_DOUBLE_EQ(seconds_of_ticks(::sysconf(_SC_CLK_TCK)), 1.0);
}

TEST(CpuTimes, ThereAreNoneWhereTheKernelDoesNotTell) {
  std::istringstream nothing, other("intr 1 2 3 4 5 6 7 8"), cut_off("cpu 1 2");
  EXPECT_FALSE(cpu_times_of(nothing));
  EXPECT_FALSE(cpu_times_of(other));
  EXPECT_FALSE(cpu_times_of(cut_off));
}

TEST(CpuTimes, TheyGrow) {
  const auto before = cpu_times();
  ASSERT_TRUE(before) << "no /proc/stat here";
  const auto after = cpu_times();
  ASSERT_TRUE(after);
  EXPECT_GE((*after - *before).busy_ticks, 0);
  EXPECT_GE(after->total_ticks, before->total_ticks);
}

}  // namespace
}  // namespace penstock::measure::cpus_test
