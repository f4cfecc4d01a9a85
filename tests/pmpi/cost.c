/* What a call costs: `cost FILE [CALLS]`, one rank. Prints nanoseconds per call, the least of
 * several rounds, of functions that pass through and of a small write. cost.sh compares runs with
 * and without Penstock. */
#include <time.h>

#include "check.h"

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static MPI_File fh;

static void direct_call(void) {
  MPI_Offset position;
  MPI_File_get_position(fh, &position);
}

static void read_nothing(void) {
  char byte;
  MPI_File_read_at(fh, 0, &byte, 0, MPI_BYTE, MPI_STATUS_IGNORE);
}

static void write_byte(void) {
  char byte = 'x';
  MPI_File_write_at(fh, 0, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE);
}

static double least_ns(void (*call)(void), int calls) {
  double least = 1e30;
  for (int round = 0; round < 9; ++round) {
    const double begin = now_ns();
    for (int i = 0; i < calls; ++i) call();
    const double each = (now_ns() - begin) / calls;
    if (each < least) least = each;
  }
  return least;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  CHECK(argc >= 2);
  const int calls = argc > 2 ? atoi(argv[2]) : 20000;
  CHECK(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                      &fh) == MPI_SUCCESS);
  printf("get_position %.0f\n", least_ns(&direct_call, calls));
  printf("read_at_nothing %.0f\n", least_ns(&read_nothing, calls));
  printf("write_at_1B %.0f\n", least_ns(&write_byte, calls));
  printf("written %d\n", 9 * calls);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  MPI_Finalize();
  return 0;
}
