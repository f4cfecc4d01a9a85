// What a thread of our own takes over from the program's: no signals, and not its one CPU.
#include "io/io_thread.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <csignal>
#include <thread>

namespace penstock::io::io_thread_test {
namespace {

struct Seen {
  sigset_t blocked;
  cpu_set_t cpus;
};

void* look(void* into) {
  auto& seen = *static_cast<Seen*>(into);
  ::pthread_sigmask(SIG_BLOCK, nullptr, &seen.blocked);
  return nullptr;
}

void join(const Result<pthread_t>& thread) {
  ASSERT_TRUE(thread);
  EXPECT_EQ(::pthread_join(*thread, nullptr), 0);
}

TEST(IoThread, TakesNoSignalsAndLeavesTheCallersMaskAsItWas) {
  Seen seen, here;
  join(start_io_thread(&look, &seen));
  look(&here);
  for (const int signal : {SIGINT, SIGTERM, SIGALRM, SIGUSR1, SIGUSR2, SIGCHLD, SIGPROF}) {
    EXPECT_EQ(::sigismember(&seen.blocked, signal), 1) << signal;
    EXPECT_EQ(::sigismember(&here.blocked, signal), 0) << signal;
  }
}

// A thread that is told where it may run once it has been started for good.
struct Waiting {
  pthread_barrier_t started;
  Seen seen;
};

void* wait_and_look(void* into) {
  auto& waiting = *static_cast<Waiting*>(into);
  ::pthread_barrier_wait(&waiting.started);
  ::sched_getaffinity(0, sizeof waiting.seen.cpus, &waiting.seen.cpus);
  return nullptr;
}

// Where a thread runs whose caller is bound to `bound`.
cpu_set_t cpus_of_a_thread_started_on(const cpu_set_t& bound) {
  Waiting waiting;
  ::pthread_barrier_init(&waiting.started, nullptr, 2);
  std::jthread([&] {
    EXPECT_EQ(::sched_setaffinity(0, sizeof bound, &bound), 0);
    const auto thread = start_io_thread(&wait_and_look, &waiting);
    ASSERT_TRUE(thread);
    ::pthread_barrier_wait(&waiting.started);
    EXPECT_EQ(::pthread_join(*thread, nullptr), 0);
  }).join();
  ::pthread_barrier_destroy(&waiting.started);
  return waiting.seen.cpus;
}

// As a program's may be: nearly all that a thread would have for its stack.
thread_local std::array<volatile char, (size_t{1} << 20) - (size_t{40} << 10)> much_of_the_program;

void* use_stack(void* bytes) {
  std::array<volatile char, size_t{700} << 10> much;
  for (size_t i = 0; i < much.size(); i += 512) much[i] = 1;
  for (size_t i = 0; i < much_of_the_program.size(); i += 512) much_of_the_program[i] = 1;
  *static_cast<size_t*>(bytes) = much.size();
  return nullptr;
}

TEST(IoThread, HasAStackBesideTheProgramsThreadLocalVariables) {
  size_t used = 0;
  join(start_io_thread(&use_stack, &used));
  EXPECT_GT(used, size_t{700} << 9);
}

TEST(IoThread, IsNotBoundToTheOneCpuOfItsCaller) {
  cpu_set_t mine, one, two;
  ASSERT_EQ(::sched_getaffinity(0, sizeof mine, &mine), 0);
  CPU_ZERO(&one);
  CPU_ZERO(&two);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &mine)) continue;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (CPU_COUNT(&two) < 2) CPU_SET(cpu, &two);
  }
  const cpu_set_t freed = cpus_of_a_thread_started_on(one);
  cpu_set_t both;
  CPU_AND(&both, &freed, &mine);
  EXPECT_TRUE(CPU_EQUAL(&both, &mine)) << "all that this program may use";
  if (CPU_COUNT(&two) == 2) {
    const cpu_set_t kept = cpus_of_a_thread_started_on(two);
    EXPECT_TRUE(CPU_EQUAL(&kept, &two)) << "a choice of several is left as it is";
  }
}

}  // namespace
}  // namespace penstock::io::io_thread_test
