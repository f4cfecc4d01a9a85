/* What the programs of the libraries have in common. A program is a list of cases; each case is a
 * file that `PROGRAM write DIR` makes and `PROGRAM read DIR` checks, so that the one can run under
 * Penstock and the other without. Rank 0 says `case NAME ok` or `case NAME failed`. */
#ifndef PENSTOCK_TESTS_LIBRARIES_CASES_H
#define PENSTOCK_TESTS_LIBRARIES_CASES_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks, failures, complaints;

/* Counts what does not hold; only the first few are printed, since one mistake is often in every
 * element. The job goes on, because a rank that stopped would leave the others waiting. */
#define CHECK(condition)                                                                 \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      ++failures;                                                                        \
      if (++complaints <= 3)                                                             \
        fprintf(stderr, "%s:%d: rank %d: does not hold: %s\n", __FILE__, __LINE__, rank, \
                #condition);                                                             \
    }                                                                                    \
  } while (0)

typedef void (*case_function)(const char* path);

struct library_case {
  const char* name;
  case_function write, read;
};

/* The value at place `i` of array `array`: different in neighbours, ranks and arrays. */
static inline int value_at(int array, long i) {
  return (int)((unsigned)(array + 1) * 2654435761u + (unsigned)i * 40503u) & 0x3fffffff;
}

static inline void* allocate(size_t bytes) {
  void* memory = calloc(1, bytes > 0 ? bytes : 1);
  if (memory == NULL) {
    fprintf(stderr, "rank %d: no memory for %zu bytes\n", rank, bytes);
    MPI_Abort(MPI_COMM_WORLD, 4);
  }
  return memory;
}

/* True on every rank when the case held on every rank. */
static int agreed_to_hold(void) {
  int worst = 0;
  MPI_Allreduce(&failures, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return worst == 0;
}

static int run_case(const struct library_case* one, int writes, const char* directory,
                    const char* suffix) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s%s", directory, one->name, suffix);
  failures = complaints = 0;
  if (rank == 0) printf("begin %s\n", one->name);
  fflush(stdout);
  (writes ? one->write : one->read)(path);
  const int held = agreed_to_hold();
  if (rank == 0) printf("case %s %s\n", one->name, held ? "ok" : "failed");
  fflush(stdout);
  return held;
}

/* `PROGRAM write|read DIR [CASE]`. `library` is its name and version, for the support matrix. */
static int run_cases(int argc, char** argv, const struct library_case* cases, const char* suffix,
                     const char* library) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int ran = 0, failed = 0;
  if (rank == 0) printf("library %s\n", library);
  if (argc >= 3) {
    for (const struct library_case* one = cases; one->name != NULL; ++one) {
      if (argc > 3 && strcmp(argv[3], one->name) != 0) continue;
      ++ran;
      failed += !run_case(one, strcmp(argv[1], "write") == 0, argv[2], suffix);
    }
  }
  if (rank == 0) printf("result {\"checks\": %d, \"failed\": %d}\n", ran, failed);
  MPI_Finalize();
  return ran > 0 && failed == 0 ? 0 : 1;
}

#endif
