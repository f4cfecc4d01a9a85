/* What opening and closing a file costs: all ranks open new files one after the other, and close
 * each at once.
 *   opens FILE writeonly|rdwr FILES
 * The first is told apart: what a library learns of a communicator once is in it. Rank 0 prints
 * milliseconds, of the slowest rank of each call: those of the first open, and the medians over the
 * other files of an open and of a close. The files, FILE.0 and so on, are removed. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct Cost {
  double open_ms, close_ms;
};

static void check(int rc) {
  if (rc != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 3);
}

static double slowest_ms(double begin_s) {
  double mine = 1e3 * (MPI_Wtime() - begin_s), slowest = 0;
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

static struct Cost open_and_close(const char* path, int mode) {
  MPI_File file;
  struct Cost cost;
  MPI_Barrier(MPI_COMM_WORLD);
  double begin_s = MPI_Wtime();
  check(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | mode, MPI_INFO_NULL, &file));
  cost.open_ms = slowest_ms(begin_s);
  MPI_Barrier(MPI_COMM_WORLD);
  begin_s = MPI_Wtime();
  check(MPI_File_close(&file));
  cost.close_ms = slowest_ms(begin_s);
  return cost;
}

static struct Cost of_file(const char* file, int i, int mode) {
  char path[4096];
  if (snprintf(path, sizeof path, "%s.%d", file, i) >= (int)sizeof path)
    MPI_Abort(MPI_COMM_WORLD, 2);
  const struct Cost cost = open_and_close(path, mode);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) remove(path);
  return cost;
}

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double median(double* values, int n) {
  qsort(values, (size_t)n, sizeof *values, by_value);
  return values[(n - 1) / 2];
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int files = argc == 4 ? atoi(argv[3]) : 0;
  if (files < 2) MPI_Abort(MPI_COMM_WORLD, 2);
  const int mode = strcmp(argv[2], "rdwr") == 0 ? MPI_MODE_RDWR : MPI_MODE_WRONLY;
  double* opens = malloc(sizeof *opens * (size_t)files);
  double* closes = malloc(sizeof *closes * (size_t)files);
  if (opens == NULL || closes == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  const double first_ms = of_file(argv[1], 0, mode).open_ms;
  for (int i = 1; i < files; ++i) {
    const struct Cost cost = of_file(argv[1], i, mode);
    opens[i - 1] = cost.open_ms, closes[i - 1] = cost.close_ms;
  }
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const double open_ms = median(opens, files - 1), close_ms = median(closes, files - 1);
  if (rank == 0)
    printf("{\"first_open_ms\": %.3f, \"open_ms\": %.3f, \"close_ms\": %.3f}\n", first_ms, open_ms,
           close_ms);
  free(opens);
  free(closes);
  MPI_Finalize();
  return 0;
}
