/* A test program's ranks and its file, and what it says of its bytes, which run_job.py compares
 * with the job's log. `PROGRAM FILE`. */
#ifndef PENSTOCK_TESTS_PMPI_JOB_H
#define PENSTOCK_TESTS_PMPI_JOB_H

#include "check.h"

static int rank, ranks;
static const char* path;

static inline void know_job(int argc, char** argv) {
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  CHECK(argc == 2);
  path = argv[1];
}

static inline void start_job(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  know_job(argc, argv);
}

static inline MPI_File open_as(int mode) {
  MPI_File fh;
  CHECK(MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &fh) == MPI_SUCCESS);
  return fh;
}

/* A file of which nothing is left from before. */
static inline MPI_File open_fresh(void) {
  if (rank == 0) remove(path);
  MPI_Barrier(MPI_COMM_WORLD);
  return open_as(MPI_MODE_CREATE | MPI_MODE_RDWR);
}

static inline int bytes_of(const MPI_Status* status) {
  int bytes = -1;
  MPI_Get_elements(status, MPI_BYTE, &bytes);
  return bytes;
}

/* Collective: what all ranks have "written", "read" or "passed". */
static inline void tell(const char* what, long long bytes) {
  long long sum = 0;
  MPI_Reduce(&bytes, &sum, 1, MPI_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%s %lld\n", what, sum);
}

/* Of a program some of whose bytes pass through. Its exit code. */
static inline int end_job(long long written, long long passed) {
  tell("written", written);
  tell("passed", passed);
  MPI_Finalize();
  return 0;
}

#endif
