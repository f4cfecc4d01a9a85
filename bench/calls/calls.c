/* What a call costs: a rank writes many small pieces, each by a call of its own.
 *   calls FILE at|view|pointer|step BYTES CALLS [rdwr|inside]
 * Piece i of a rank is block i * RANKS + RANK of the file. `at` names its offset to
 * MPI_File_write_at; `view` its place in a view of the rank's blocks; `pointer` leaves it to
 * MPI_File_write in that view. `step` is HDF5's way of writing with all ranks, of three calls: a
 * view of the piece, MPI_File_write_at_all, and the view of all bytes again. `rdwr` opens the file
 * to be read, too, as HDF5 does; `inside` does so and gives the file its size before, as who writes
 * over a checkpoint finds it.
 *
 * As many again come first and are not counted: they open what is opened once. Rank 0 prints the
 * medians over the ranks: nanoseconds of a call, and those until all bytes are synced, per call. */
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct Job {
  MPI_File file;
  int rank, ranks;
  bool through_view, pointer, step;
  int bytes, calls;
  char* data;
};

struct Cost {
  double call_ns, synced_ns;
};

static void check(int rc) {
  if (rc != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 3);
}

static void write_step(const struct Job* j, int64_t i) {
  MPI_Datatype block;
  MPI_Type_contiguous(j->bytes, MPI_BYTE, &block);
  MPI_Type_commit(&block);
  const MPI_Offset place = (i * j->ranks + j->rank) * j->bytes;
  check(MPI_File_set_view(j->file, place, MPI_BYTE, block, "native", MPI_INFO_NULL));
  check(MPI_File_write_at_all(j->file, 0, j->data, j->bytes, MPI_BYTE, MPI_STATUS_IGNORE));
  check(MPI_File_set_view(j->file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  MPI_Type_free(&block);
}

static void write_piece(const struct Job* j, int64_t i) {
  if (j->step) {
    write_step(j, i);
    return;
  }
  if (j->pointer) {
    check(MPI_File_write(j->file, j->data, j->bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    return;
  }
  const MPI_Offset block = j->through_view ? i : i * j->ranks + j->rank;
  check(
      MPI_File_write_at(j->file, block * j->bytes, j->data, j->bytes, MPI_BYTE, MPI_STATUS_IGNORE));
}

static void write_pieces(const struct Job* j, int64_t first) {
  for (int64_t i = first; i < first + j->calls; ++i) write_piece(j, i);
}

static void set_view(const struct Job* j) {
  MPI_Datatype block, dealt;
  MPI_Type_contiguous(j->bytes, MPI_BYTE, &block);
  MPI_Type_create_resized(block, 0, (MPI_Aint)j->bytes * j->ranks, &dealt);
  MPI_Type_commit(&dealt);
  check(MPI_File_set_view(j->file, (MPI_Offset)j->rank * j->bytes, MPI_BYTE, dealt, "native",
                          MPI_INFO_NULL));
  MPI_Type_free(&block);
  MPI_Type_free(&dealt);
}

static struct Cost measure(const struct Job* j) {
  write_pieces(j, 0);
  check(MPI_File_sync(j->file));
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin_s = MPI_Wtime();
  write_pieces(j, j->calls);
  const double end_s = MPI_Wtime();
  check(MPI_File_sync(j->file));
  const double synced_s = MPI_Wtime();
  return (struct Cost){1e9 * (end_s - begin_s) / j->calls, 1e9 * (synced_s - begin_s) / j->calls};
}

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

/* Over the ranks, on rank 0. */
static double median(const struct Job* j, double mine) {
  double* all = malloc(sizeof *all * (size_t)j->ranks);
  if (all == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  MPI_Gather(&mine, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  if (j->rank == 0) qsort(all, (size_t)j->ranks, sizeof *all, by_value);
  const double middle = j->rank == 0 ? all[(j->ranks - 1) / 2] : 0;
  free(all);
  return middle;
}

static struct Job job_of(int argc, char** argv) {
  struct Job j = {.rank = 0};
  MPI_Comm_rank(MPI_COMM_WORLD, &j.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &j.ranks);
  if (argc < 5 || argc > 6 || atoi(argv[3]) < 1 || atoi(argv[4]) < 1) MPI_Abort(MPI_COMM_WORLD, 2);
  j.pointer = strcmp(argv[2], "pointer") == 0;
  j.step = strcmp(argv[2], "step") == 0;
  j.through_view = j.pointer || strcmp(argv[2], "view") == 0;
  j.bytes = atoi(argv[3]), j.calls = atoi(argv[4]);
  j.data = malloc((size_t)j.bytes);
  if (j.data == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  memset(j.data, 'a' + j.rank % 26, (size_t)j.bytes);
  return j;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  struct Job j = job_of(argc, argv);
  const bool inside = argc == 6 && strcmp(argv[5], "inside") == 0;
  const bool readable = inside || (argc == 6 && strcmp(argv[5], "rdwr") == 0);
  const int mode = MPI_MODE_CREATE | (readable ? MPI_MODE_RDWR : MPI_MODE_WRONLY);
  check(MPI_File_open(MPI_COMM_WORLD, argv[1], mode, MPI_INFO_NULL, &j.file));
  if (inside) check(MPI_File_set_size(j.file, (MPI_Offset)2 * j.calls * j.ranks * j.bytes));
  if (j.through_view) set_view(&j);
  const struct Cost mine = measure(&j);
  check(MPI_File_close(&j.file));
  const double call_ns = median(&j, mine.call_ns), synced_ns = median(&j, mine.synced_ns);
  if (j.rank == 0) printf("{\"call_ns\": %.1f, \"synced_ns\": %.1f}\n", call_ns, synced_ns);
  free(j.data);
  MPI_Finalize();
  return 0;
}
