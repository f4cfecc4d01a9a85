/* A thread of each rank writes at the shared file pointer while the rank's other one writes in rank
 * order with all: `shared FILE`, any number of ranks. Every integer is in the file once. */
#include <stdlib.h>

#include "threaded_job.h"

enum { kAlone = 60, kOrdered = 40 };

static MPI_File fh;

static int value_of(int of_rank, int i) { return 1 + of_rank * (kAlone + kOrdered) + i; }

static void* write_alone(void* unused) {
  (void)unused;
  for (int i = 0; i < kAlone; ++i) {
    const int value = value_of(rank, i);
    CHECK(MPI_File_write_shared(fh, &value, 1, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  }
  return NULL;
}

static int by_value(const void* a, const void* b) { return *(const int*)a - *(const int*)b; }

static void check_file(void) {
  const int all = ranks * (kAlone + kOrdered);
  int* got = calloc((size_t)all + 1, sizeof(int));
  const long bytes = read_back(path, 0, got, (all + 1L) * (long)sizeof(int));
  CHECK(bytes == all * (long)sizeof(int));
  qsort(got, (size_t)all, sizeof(int), by_value);
  for (int i = 0; i < all; ++i) CHECK(got[i] == i + 1);
  free(got);
}

int main(int argc, char** argv) {
  pthread_t thread;
  start_threaded_job(argc, argv);
  fh = open_fresh();
  CHECK(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL) == MPI_SUCCESS);
  CHECK(pthread_create(&thread, NULL, &write_alone, NULL) == 0);
  for (int i = 0; i < kOrdered; ++i) {
    const int value = value_of(rank, kAlone + i);
    CHECK(MPI_File_write_ordered(fh, &value, 1, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  }
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  if (rank == 0) check_file();
  return end_job((kAlone + kOrdered) * (long long)sizeof(int), kAlone * (long long)sizeof(int));
}
