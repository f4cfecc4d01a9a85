/* A program in steps: each writes its output and computes meanwhile, for so many seconds.
 *   steps FILE iwrite_all|split|write_all STEPS BYTES SECONDS BLOCK
 * BYTES is what a rank writes in a step: in one piece, where BLOCK is 0, else by turns with the
 * others, in blocks of so many bytes. Rank 0 prints the seconds from the first write to the end of
 * the last sync, and of these the seconds inside the calls that start writes. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Keeps the core busy, as computing does. */
static double compute(double seconds) {
  const double begin = MPI_Wtime();
  volatile double x = 1;
  while (MPI_Wtime() - begin < seconds)
    for (int i = 0; i < 1000; ++i) x = x * 1.0000001 + 1e-9;
  return x;
}

static void check(int rc, const char* what) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (rc == MPI_SUCCESS) return;
  MPI_Error_string(rc, text, &length);
  fprintf(stderr, "steps: %s: %.*s\n", what, length, text);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void step(MPI_File fh, const char* how, MPI_Offset at, char* data, int bytes, double seconds,
                 double* inside) {
  MPI_Request request = MPI_REQUEST_NULL;
  const double begin = MPI_Wtime();
  if (strcmp(how, "iwrite_all") == 0)
    check(MPI_File_iwrite_at_all(fh, at, data, bytes, MPI_BYTE, &request), "iwrite_at_all");
  else if (strcmp(how, "split") == 0)
    check(MPI_File_write_at_all_begin(fh, at, data, bytes, MPI_BYTE), "write_at_all_begin");
  else
    check(MPI_File_write_at_all(fh, at, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE), "write_at_all");
  *inside += MPI_Wtime() - begin;
  compute(seconds);
  check(MPI_Wait(&request, MPI_STATUS_IGNORE), "wait");
  if (strcmp(how, "split") == 0)
    check(MPI_File_write_at_all_end(fh, data, MPI_STATUS_IGNORE), "write_at_all_end");
}

/* A block of each rank by turns. */
static void take_turns(MPI_File fh, int block, int rank, int ranks) {
  MPI_Datatype piece, turns;
  MPI_Type_contiguous(block, MPI_BYTE, &piece);
  MPI_Type_create_resized(piece, 0, (MPI_Aint)block * ranks, &turns);
  MPI_Type_commit(&turns);
  check(MPI_File_set_view(fh, (MPI_Offset)block * rank, MPI_BYTE, turns, "native", MPI_INFO_NULL),
        "set_view");
  MPI_Type_free(&turns);
  MPI_Type_free(&piece);
}

int main(int argc, char** argv) {
  int rank = 0, ranks = 0;
  MPI_File fh;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 7) MPI_Abort(MPI_COMM_WORLD, 2);
  const int steps = atoi(argv[3]), bytes = atoi(argv[4]), block = atoi(argv[6]);
  const double seconds = atof(argv[5]);
  char* data = malloc((size_t)bytes);
  memset(data, 'a' + rank % 26, (size_t)bytes);
  if (MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL,
                    &fh) != MPI_SUCCESS)
    MPI_Abort(MPI_COMM_WORLD, 3);
  if (block > 0) take_turns(fh, block, rank, ranks);
  MPI_Barrier(MPI_COMM_WORLD);
  double inside = 0;
  const double begin = MPI_Wtime();
  for (int s = 0; s < steps; ++s) {
    const MPI_Offset turn = block > 0 ? s : (MPI_Offset)s * ranks + rank;
    step(fh, argv[2], turn * bytes, data, bytes, seconds, &inside);
  }
  int failed = MPI_File_sync(fh) != MPI_SUCCESS;
  MPI_Barrier(MPI_COMM_WORLD);
  const double total = MPI_Wtime() - begin;
  failed += MPI_File_close(&fh) != MPI_SUCCESS;
  if (rank == 0) printf("{\"total_s\": %.4f, \"inside_s\": %.4f}\n", total, inside);
  free(data);
  MPI_Finalize();
  return failed == 0 ? 0 : 1;
}
