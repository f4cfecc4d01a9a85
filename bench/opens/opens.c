/* What opening and closing a file costs: all ranks open new files one after the other, and close
 * each at once, or write to it before.
 *   opens FILE writeonly|rdwr FILES [collective|independent|ordered BYTES]
 * Each rank writes every so manieth piece of 4 KiB, BYTES in all: in one call, or a call for each.
 * `ordered`: behind the lower ranks' at the shared pointer, in one call.
 * The first file is told apart: what a library learns of a communicator once is in it. Rank 0
 * prints milliseconds, of the slowest rank of each call: those of the first file, and the medians
 * over the other files. The files, FILE.0 and so on, are removed. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kPiece = 4096 };

struct Cost {
  double open_ms, write_ms, close_ms;
};

/* What each rank writes to each file; no pieces: nothing. */
struct Work {
  int is_collective, is_ordered, pieces;
  char* bytes;
};

static void check(int rc) {
  if (rc != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 3);
}

static double slowest_ms(double begin_s) {
  double mine = 1e3 * (MPI_Wtime() - begin_s), slowest = 0;
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

static void view_own_pieces(MPI_File file, int pieces) {
  int rank = 0, ranks = 1;
  MPI_Datatype own;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Type_vector(pieces, kPiece, kPiece * ranks, MPI_BYTE, &own);
  MPI_Type_commit(&own);
  check(MPI_File_set_view(file, (MPI_Offset)rank * kPiece, MPI_BYTE, own, "native", MPI_INFO_NULL));
  MPI_Type_free(&own);
}

static void write_to(MPI_File file, const struct Work* work) {
  if (work->pieces == 0) return;
  if (work->is_ordered) {
    check(MPI_File_write_ordered(file, work->bytes, work->pieces * kPiece, MPI_BYTE,
                                 MPI_STATUS_IGNORE));
    return;
  }
  view_own_pieces(file, work->pieces);
  if (work->is_collective)
    check(
        MPI_File_write_all(file, work->bytes, work->pieces * kPiece, MPI_BYTE, MPI_STATUS_IGNORE));
  for (int i = 0; i < work->pieces && !work->is_collective; ++i)
    check(MPI_File_write(file, work->bytes + (size_t)i * kPiece, kPiece, MPI_BYTE,
                         MPI_STATUS_IGNORE));
}

static struct Cost use(const char* path, int mode, const struct Work* work) {
  MPI_File file;
  struct Cost cost;
  MPI_Barrier(MPI_COMM_WORLD);
  double begin_s = MPI_Wtime();
  check(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | mode, MPI_INFO_NULL, &file));
  cost.open_ms = slowest_ms(begin_s);
  MPI_Barrier(MPI_COMM_WORLD);
  begin_s = MPI_Wtime();
  write_to(file, work);
  cost.write_ms = slowest_ms(begin_s);
  MPI_Barrier(MPI_COMM_WORLD);
  begin_s = MPI_Wtime();
  check(MPI_File_close(&file));
  cost.close_ms = slowest_ms(begin_s);
  return cost;
}

static struct Cost of_file(const char* file, int i, int mode, const struct Work* work) {
  char path[4096];
  if (snprintf(path, sizeof path, "%s.%d", file, i) >= (int)sizeof path)
    MPI_Abort(MPI_COMM_WORLD, 2);
  const struct Cost cost = use(path, mode, work);
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

static struct Work work_of(int argc, char** argv) {
  struct Work work = {0, 0, 0, NULL};
  if (argc != 6) return work;
  const int is_independent = strcmp(argv[4], "independent") == 0;
  work.is_collective = strcmp(argv[4], "collective") == 0;
  work.is_ordered = strcmp(argv[4], "ordered") == 0;
  work.pieces = atoi(argv[5]) / kPiece;
  work.bytes = malloc((size_t)work.pieces * kPiece);
  if (work.is_collective + is_independent + work.is_ordered != 1 || work.pieces < 1 ||
      work.bytes == NULL)
    MPI_Abort(MPI_COMM_WORLD, 2);
  memset(work.bytes, 'x', (size_t)work.pieces * kPiece);
  return work;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int files = argc == 4 || argc == 6 ? atoi(argv[3]) : 0;
  if (files < 2) MPI_Abort(MPI_COMM_WORLD, 2);
  const int mode = strcmp(argv[2], "rdwr") == 0 ? MPI_MODE_RDWR : MPI_MODE_WRONLY;
  const struct Work work = work_of(argc, argv);
  double* times = malloc(3 * sizeof *times * (size_t)files);
  if (times == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  double *opens = times, *writes = times + files, *closes = times + 2 * (size_t)files;
  const struct Cost first = of_file(argv[1], 0, mode, &work);
  for (int i = 1; i < files; ++i) {
    const struct Cost cost = of_file(argv[1], i, mode, &work);
    opens[i - 1] = cost.open_ms, writes[i - 1] = cost.write_ms, closes[i - 1] = cost.close_ms;
  }
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0)
    printf(
        "{\"first_open_ms\": %.3f, \"first_write_ms\": %.3f, \"first_close_ms\": %.3f, "
        "\"open_ms\": %.3f, \"write_ms\": %.3f, \"close_ms\": %.3f}\n",
        first.open_ms, first.write_ms, first.close_ms, median(opens, files - 1),
        median(writes, files - 1), median(closes, files - 1));
  free(times);
  free(work.bytes);
  MPI_Finalize();
  return 0;
}
