// A lock between processes: forked ones, some of which die inside.
#include "comm/shared_mutex.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>

#include "comm/shared_segment.hpp"

namespace penstock::comm::shared_mutex_test {
namespace {

// Anonymous memory that forked processes share.
template <class T>
class Shared {
 public:
  Shared()
      : value_(new (::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                           -1, 0)) T{}) {}
  ~Shared() { ::munmap(value_, sizeof(T)); }
  T& operator*() const { return *value_; }
  T* operator->() const { return value_; }

 private:
  T* value_;
};

pid_t in_child(const std::function<bool()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body() ? 0 : 1);
  return child;
}

bool ended_well(pid_t child) {
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

struct Crowding {
  std::atomic<int> inside = 0, most = 0;
};

bool pass_often(const std::string& name, Crowding& crowding) {
  const auto lock = open_shared_mutex(name);
  for (int i = 0; lock && i < 300; ++i) {
    if (!(*lock)->enter()) return false;
    if (++crowding.inside > 1) crowding.most = 2;
    ::sched_yield();
    --crowding.inside;
    (*lock)->leave();
  }
  return lock.has_value();
}

TEST(SharedMutex, LetsOneProcessInAtATime) {
  const std::string name = unused_segment_name("lock");
  const auto lock = make_shared_mutex(name);
  ASSERT_TRUE(lock) << lock.error().message();
  const Shared<Crowding> crowding;
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i)
    children.push_back(in_child([&] { return pass_often(name, *crowding); }));
  for (const pid_t child : children) EXPECT_TRUE(ended_well(child));
  forget_segment_name(name);
  EXPECT_EQ(crowding->most, 0);
}

TEST(SharedMutex, AHolderThatIsKilledLeavesItToTheNext) {
  const std::string name = unused_segment_name("lock");
  const auto lock = make_shared_mutex(name);
  ASSERT_TRUE(lock) << lock.error().message();
  const Shared<std::atomic<int>> holding;
  for (int round = 1; round <= 3; ++round) {  // not only once: the lock must become whole again
    const pid_t holder = in_child([&] {
      const bool inside = (*lock)->enter().has_value();
      *holding = round;
      for (;;) ::pause();
      return inside;
    });
    while (*holding != round) ::sched_yield();
    const pid_t waiter = in_child([&] { return (*lock)->enter().has_value(); });  // dies inside too
    ::kill(holder, SIGKILL);
    EXPECT_FALSE(ended_well(holder));
    EXPECT_TRUE(ended_well(waiter));
    ASSERT_TRUE((*lock)->enter());
    (*lock)->leave();
  }
  forget_segment_name(name);
}

TEST(SharedMutex, LivesOnWithoutItsName) {
  const std::string name = unused_segment_name("lock");
  const auto lock = make_shared_mutex(name);
  ASSERT_TRUE(lock);
  EXPECT_FALSE(make_shared_mutex(name)) << "the name is taken";
  forget_segment_name(name);
  forget_segment_name(name);
  const auto opened = open_shared_mutex(name);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().error_class, ErrorClass::no_such_file);
  EXPECT_TRUE((*lock)->enter());
  (*lock)->leave();
}

TEST(SharedMutex, NamesAreNeverTheSame) {
  EXPECT_NE(unused_segment_name("lock"), unused_segment_name("lock"));
}

}  // namespace
}  // namespace penstock::comm::shared_mutex_test
