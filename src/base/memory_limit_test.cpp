#include "base/memory_limit.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace penstock {
namespace {

// A folder that stands for the root, with what the kernel would say.
class MemoryLimit : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(root_); }

  void says(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_.string() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << '\n';
  }

  std::optional<int64_t> left() const { return memory_left(root_.string()); }

 private:
  // Of this process alone: others run other cases at the same time.
  const std::filesystem::path root_ =
      std::filesystem::path(testing::TempDir()) / ("memory-limit-" + std::to_string(::getpid()));
};

TEST_F(MemoryLimit, IsNoneWhereNobodySaysOne) {
  EXPECT_EQ(left(), std::nullopt);
  says("/proc/self/cgroup", "4:memory:/job\n0::/job");
  EXPECT_EQ(left(), std::nullopt);
  says("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712");
  says("/sys/fs/cgroup/job/memory.max", "max");
  EXPECT_EQ(left(), std::nullopt);
}

TEST_F(MemoryLimit, IsWhatIsNotUsedOfVersion2) {
  says("/proc/self/cgroup", "0::/slurm/job_7");
  says("/sys/fs/cgroup/slurm/job_7/memory.max", "1000");
  EXPECT_EQ(left(), 1000);
  says("/sys/fs/cgroup/slurm/job_7/memory.current", "700");
  EXPECT_EQ(left(), 300);
}

TEST_F(MemoryLimit, CountsWhatIsKeptOfFilesAsFree) {
  says("/proc/self/cgroup", "4:memory:/job");
  says("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1000");
  says("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "900");
  says("/sys/fs/cgroup/memory/job/memory.stat",
       "cache 400\ntotal_inactive_file 100\ntotal_active_file 50\ninactive_file 7");
  EXPECT_EQ(left(), 250);
}

TEST_F(MemoryLimit, IsTheTightestOfTheGroupAndThoseAbove) {
  says("/proc/self/cgroup", "4:memory:/a/b\n3:cpuset:/c");
  says("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "1000");
  says("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "800");
  EXPECT_EQ(left(), 800);
  says("/sys/fs/cgroup/memory/memory.limit_in_bytes", "600");
  EXPECT_EQ(left(), 600);
  says("/sys/fs/cgroup/memory/memory.usage_in_bytes", "900");
  EXPECT_EQ(left(), 0);
}

int asked = 0;

TEST(RecentMemoryLeft, AsksOnceForManyPages) {
  asked = 0;
  RecentMemoryLeft limited, unlimited;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(limited.get([] { return ++asked, std::optional<int64_t>(1 << 20); }, 10), 1 << 20);
    EXPECT_EQ(unlimited.get([] { return ++asked, std::optional<int64_t>(); }, 10), std::nullopt);
  }
  EXPECT_LT(asked, 50);
}

TEST(RecentMemoryLeft, AsksAgainAfterAWhile) {
  asked = 0;
  RecentMemoryLeft left;
  const auto ask = [] { return std::optional<int64_t>(++asked); };
  EXPECT_EQ(left.get(ask, 0), 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(left.get(ask, 0), 2);
}

// Of 40 pages that are left, and that other processes may take as well.
TEST(RecentMemoryLeft, AsksForEachPageWhereFewAreLeft) {
  asked = 0;
  RecentMemoryLeft left;
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(left.get([] { return ++asked, std::optional<int64_t>(40 << 20); }, 1 << 20),
              40 << 20);
  EXPECT_EQ(asked, 10);
}

}  // namespace
}  // namespace penstock
