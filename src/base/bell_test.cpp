// A bell wakes its sleeper, whoever rings; and a process that has ended is known to have.
#include "base/bell.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <limits>
#include <string>
#include <thread>

namespace penstock::bell_test {
namespace {

constexpr std::chrono::hours kLong{1};

TEST(Bell, ARingBeforeTheSleepIsHeard) {
  const auto bell = Bell::make();
  const uint32_t heard = bell->rings();
  bell->ring();
  bell->sleep(heard, kLong);
  EXPECT_EQ(bell->rings(), heard + 1);
}

TEST(Bell, ASleeperIsWoken) {
  const auto bell = Bell::make();
  std::thread sleeper([&] {
    while (bell->rings() == 0) bell->sleep(0, kLong);
  });
  ::usleep(1000);  // asleep by then, perhaps
  bell->ring();
  sleeper.join();
}

TEST(Bell, AnotherProcessRings) {
  const auto bell = Bell::make();
  const pid_t child = ::fork();
  if (child == 0) {
    if (const auto far = FarBell::find(bell->address())) far->ring();
    ::_exit(0);
  }
  while (bell->rings() == 0) bell->sleep(0, kLong);
  ::waitpid(child, nullptr, 0);
}

// Else the kernel would send a signal that ends the program.
TEST(Bell, IsMadeUnderALimitOfFilesThatIsSmallerThanItsMemory) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{100, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto bell = Bell::make();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_NE(bell, nullptr);
  bell->ring();
  EXPECT_EQ(bell->rings(), 1U);
}

TEST(Bell, NobodyFindsWhatIsNotThereAnyMore) {
  Bell::Address gone;
  {
    const auto bell = Bell::make();
    gone = bell->address();
    EXPECT_TRUE(FarBell::find(gone));
  }
  EXPECT_FALSE(FarBell::find(gone));
  const auto other = Bell::make();  // has the same number now
  EXPECT_FALSE(FarBell::find(gone));
  EXPECT_FALSE(FarBell::find(Bell::unheard()));
  Bell::Address elsewhere = other->address();
  ++elsewhere.pid_namespace;
  EXPECT_FALSE(FarBell::find(elsewhere));
  Bell::Address same_inode = other->address();
  ++same_inode.device;
  EXPECT_FALSE(FarBell::find(same_inode)) << "a file of another file system";
}

TEST(Bell, WhatHasItsNumberByNowIsNotOpened) {
  const std::string pipe = testing::TempDir() + "bell-pipe-" + std::to_string(::getpid());
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ::unlink(pipe.c_str());
  const auto bell = Bell::make();
  ASSERT_GE(::dup2(reader, bell->address().descriptor), 0);
  EXPECT_FALSE(FarBell::find(bell->address()));
  pollfd written{.fd = reader, .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&written, 1, 0), 0) << "somebody has been at the pipe's other end";
  ::close(reader);
}

TEST(Bell, AProcessIsGoneAlsoWhileItsParentHasNotLooked) {
  Bell::Address address = Bell::unheard();
  EXPECT_FALSE(process_is_gone(address));
  address.pid = ::fork();
  if (address.pid == 0) {
    ::pause();
    ::_exit(0);
  }
  EXPECT_FALSE(process_is_gone(address));
  ::kill(address.pid, SIGKILL);
  siginfo_t ended{};
  ::waitid(P_PID, id_t(address.pid), &ended, WEXITED | WNOWAIT);  // it stays a zombie
  EXPECT_TRUE(process_is_gone(address));
  ::waitpid(address.pid, nullptr, 0);
  EXPECT_TRUE(process_is_gone(address));
  ++address.pid_namespace;
  EXPECT_FALSE(process_is_gone(address)) << "out of sight";
}

char state_of(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string number, name, state;
  stat >> number >> name >> state;
  return state.empty() ? '?' : state[0];
}

// /proc shows such a process as a zombie.
TEST(Bell, AProcessIsNotGoneWhileAThreadOutlivesItsFirst) {
  Bell::Address address = Bell::unheard();
  address.pid = ::fork();
  if (address.pid == 0) {
    std::thread(&::pause).detach();
    ::syscall(SYS_exit, 0);  // this thread alone
  }
  while (state_of(address.pid) != 'Z') ::usleep(1000);
  EXPECT_FALSE(process_is_gone(address));
  ::kill(address.pid, SIGKILL);
  siginfo_t ended{};
  ::waitid(P_PID, id_t(address.pid), &ended, WEXITED | WNOWAIT);
  EXPECT_TRUE(process_is_gone(address));
  ::waitpid(address.pid, nullptr, 0);
}

enum Gone : int { kNobody, kSomebody, kNotKnown };

// Of a process beside this one, and of a number that nobody has.
Gone who_is_gone_without_proc() {
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return kNotKnown;
  if (::mount("none", "/proc", "tmpfs", 0, nullptr) != 0) return kNotKnown;
  Bell::Address address = Bell::unheard();
  if (process_is_gone(address)) return kSomebody;
  address.pid = std::numeric_limits<int32_t>::max();
  return process_is_gone(address) ? kSomebody : kNobody;
}

// In a program of its own, which has not asked yet what its numbers are of.
TEST(BellDeathTest, WithoutProcNoProcessIsGone) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  int told = kSomebody;
  const auto keep = [&told](int status) {
    told = WIFEXITED(status) ? WEXITSTATUS(status) : kSomebody;
    return true;
  };
  EXPECT_EXIT(::_exit(who_is_gone_without_proc()), keep, "");
  if (told == kNotKnown) GTEST_SKIP() << "no /proc can be hidden here: unshare is refused";
  EXPECT_EQ(told, kNobody);
}

}  // namespace
}  // namespace penstock::bell_test
