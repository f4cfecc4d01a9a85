// pthread_create(3) instead of std::thread: it says why it failed, without an exception.
#include "io/io_thread.hpp"

#include <errno.h>
#include <link.h>
#include <sched.h>

#include <csignal>
#include <cstddef>

namespace penstock::io {
namespace {

// The kernel takes out of the mask what the job may not use (its cpuset), so that all CPUs means
// all of the node that are ours. Two hardware threads of a core are left as they are: one of them
// is free. A thread that must stay where it is works too, only later.
void leave_the_one_cpu(pthread_t thread) {
  cpu_set_t cpus;
  if (::pthread_getaffinity_np(thread, sizeof cpus, &cpus) != 0 || CPU_COUNT(&cpus) != 1) return;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) CPU_SET(cpu, &cpus);
  static_cast<void>(::pthread_setaffinity_np(thread, sizeof cpus, &cpus));
}

// Of a process with a limit on its address space the usual 8 MiB are much, and where the limit on
// stacks is of gigabytes a thread would take as much.
constexpr size_t kStackBytes = size_t{1} << 20;

int add_thread_local(dl_phdr_info* object, size_t, void* sum) {
  for (int i = 0; i < object->dlpi_phnum; ++i)
    if (const auto& part = object->dlpi_phdr[i]; part.p_type == PT_TLS)
      *static_cast<size_t*>(sum) += part.p_memsz + part.p_align;
  return 0;
}

// The thread-local variables of the program and its libraries lie on each thread's stack, and may
// take most of it: those of OpenMP's threadprivate in Fortran do.
size_t thread_local_bytes() {
  size_t sum = 0;
  ::dl_iterate_phdr(&add_thread_local, &sum);
  return sum;
}

// 0, or an errno.
int start(pthread_t* thread, void* (*body)(void*), void* argument) {
  pthread_attr_t attributes;
  if (const int failed = ::pthread_attr_init(&attributes); failed != 0) return failed;
  int failed = ::pthread_attr_setstacksize(&attributes, kStackBytes + thread_local_bytes());
  if (failed == 0) failed = ::pthread_create(thread, &attributes, body, argument);
  ::pthread_attr_destroy(&attributes);
  return failed == EINVAL ? ::pthread_create(thread, nullptr, body, argument) : failed;
}

}  // namespace

Result<pthread_t> start_io_thread(void* (*body)(void*), void* argument) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // a thread begins with its creator's mask
  pthread_t thread;
  const int failed = start(&thread, body, argument);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (failed != 0) return os_error("pthread_create", "an I/O thread", failed);
  leave_the_one_cpu(thread);
  return thread;
}

}  // namespace penstock::io
