// Signal masks and affinity.
#include "helper_thread.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

namespace penstock::measure {

std::thread helper_thread(std::function<void()> work) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread([work = std::move(work)] {
    cpu_set_t every;
    CPU_ZERO(&every);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) CPU_SET(cpu, &every);
    (void)sched_setaffinity(0, sizeof every, &every);  // the kernel keeps to what is allowed
    work();
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace penstock::measure
