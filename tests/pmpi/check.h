/* Checks of the test programs: the first that fails names itself and ends the job. */
#ifndef PENSTOCK_TESTS_PMPI_CHECK_H
#define PENSTOCK_TESTS_PMPI_CHECK_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                             \
  do {                                                                               \
    if (!(condition)) {                                                              \
      fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
      MPI_Abort(MPI_COMM_WORLD, 3);                                                  \
    }                                                                                \
  } while (0)

static inline int class_of(int rc) {
  int c = MPI_SUCCESS;
  if (rc != MPI_SUCCESS) MPI_Error_class(rc, &c);
  return c;
}

/* The program's own reading of the file, not MPI's. */
static inline long read_back(const char* path, long offset, void* to, long n) {
  FILE* f = fopen(path, "rb");
  if (f == NULL) return -1;
  fseek(f, offset, SEEK_SET);
  const long got = (long)fread(to, 1, (size_t)n, f);
  fclose(f);
  return got;
}

#endif
