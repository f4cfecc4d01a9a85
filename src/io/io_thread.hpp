// A thread that waits for devices in the program's stead.
#pragma once

#include <pthread.h>

#include "base/error.hpp"

namespace penstock::io {

// Runs body(argument) in a new thread, which the caller joins. The thread takes no signals: the
// program's handlers run in the program's threads. Where the caller is bound to one CPU, as
// launchers do with ranks, the thread is not: it would wait for the very CPU that the rank computes
// on. The body makes no MPI call and throws nothing.
Result<pthread_t> start_io_thread(void* (*body)(void*), void* argument);

using StartThread = decltype(&start_io_thread);

}  // namespace penstock::io
