// A bell wakes its sleeper, whoever rings; and a process that has ended is known to have.
#include "base/bell.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

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

}  // namespace
}  // namespace penstock::bell_test
