/* As job.h, with several threads of each rank. */
#ifndef PENSTOCK_TESTS_PMPI_THREADED_JOB_H
#define PENSTOCK_TESTS_PMPI_THREADED_JOB_H

#include <pthread.h>

#include "job.h"

enum { kThreads = 3 };

static inline void start_threaded_job(int argc, char** argv) {
  int granted;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &granted);
  CHECK(granted == MPI_THREAD_MULTIPLE);
  know_job(argc, argv);
}

/* Each has one of kThreads workers of `bytes` bytes. Until all have ended. */
static inline void run_threads(void* (*work)(void*), void* workers, size_t bytes) {
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i)
    CHECK(pthread_create(&threads[i], NULL, work, (char*)workers + (size_t)i * bytes) == 0);
  for (int i = 0; i < kThreads; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
}

#endif
