#include "comm/kept_threads.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdlib>
#include <set>
#include <thread>
#include <vector>

namespace penstock::comm::kept_threads_test {
namespace {

std::set<std::thread::id> ids_of(int count) {
  std::vector<std::thread::id> ids(static_cast<size_t>(count));
  std::barrier all(count);  // so that no thread does two of them
  run_on_threads(count, [&](int i) {
    ids[size_t(i)] = std::this_thread::get_id();
    all.arrive_and_wait();
  });
  return {ids.begin(), ids.end()};
}

TEST(KeptThreads, EachNumberHasAThreadOfItsOwnAndAllRunAtOnce) {
  for (const int count : {1, 2, 7, 100}) EXPECT_EQ(ids_of(count).size(), size_t(count));
  run_on_threads(0, [](int) { FAIL(); });
}

TEST(KeptThreads, TheNextWorkIsDoneByThreadsOfTheLast) {
  const std::set<std::thread::id> before = ids_of(8), after = ids_of(4);
  EXPECT_TRUE(std::ranges::includes(before, after));
}

TEST(KeptThreads, WorkMayHaveWorkOfItsOwn) {
  std::atomic<int> done = 0;
  run_on_threads(3, [&](int) { run_on_threads(2, [&](int) { ++done; }); });
  EXPECT_EQ(done, 6);
}

TEST(KeptThreads, AForkHasNoneOfItsParents) {
  ids_of(4);
  const pid_t child = ::fork();
  if (child == 0) {
    std::atomic<int> done = 0;
    run_on_threads(4, [&](int) { ++done; });
    ::_exit(done);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 4);
}

}  // namespace
}  // namespace penstock::comm::kept_threads_test
