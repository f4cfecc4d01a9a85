/* How much memory one collective write of very many small blocks takes.
 *   blocks FILE vector|irregular BLOCKS
 * Each rank writes BLOCKS blocks of 8 bytes; those of all ranks fill the file without a hole,
 * either in turn or in an order that differs from round to round. Rank 0 prints, of the rank that
 * needs most: what its resident memory grew by at the peak, from before the file is opened to after
 * it is closed. The user's buffer and the datatype are there before. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int rc) {
  if (rc != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 3);
}

static long long of_status(const char* key) { /* bytes */
  char line[256];
  long long kib = -1;
  FILE* f = fopen("/proc/self/status", "r");
  while (f != NULL && fgets(line, sizeof line, f) != NULL)
    if (strncmp(line, key, strlen(key)) == 0) kib = atoll(line + strlen(key) + 1);
  if (f != NULL) fclose(f);
  return kib * 1024;
}

/* Where it is refused, the peak may be one of before: too large, never too small. */
static void forget_peak(void) {
  FILE* f = fopen("/proc/self/clear_refs", "w");
  if (f == NULL) return;
  fputs("5", f);
  fclose(f);
}

/* Of this rank in round i. */
static int place(int irregular, int i, int rank, int ranks) {
  const unsigned turn = irregular ? (unsigned)i * 2654435761u >> 16 : 0;
  return (int)((unsigned)rank + turn % (unsigned)ranks) % ranks;
}

static MPI_Datatype filetype_of(int irregular, int blocks, int rank, int ranks) {
  MPI_Datatype type;
  if (!irregular) {
    check(MPI_Type_vector(blocks, 1, ranks, MPI_INT64_T, &type));
  } else {
    int* places = malloc(sizeof(int) * (size_t)blocks);
    for (int i = 0; i < blocks; ++i) places[i] = i * ranks + place(1, i, rank, ranks);
    check(MPI_Type_create_indexed_block(blocks, 1, places, MPI_INT64_T, &type));
    free(places);
  }
  check(MPI_Type_commit(&type));
  return type;
}

/* Each block holds its number. */
static int wrong_blocks(const char* path, long long blocks) {
  FILE* f = fopen(path, "rb");
  int wrong = f == NULL;
  long long number;
  for (long long i = 0; i < blocks && !wrong; ++i)
    wrong = fread(&number, sizeof number, 1, f) != 1 || number != i;
  if (f != NULL) fclose(f);
  return wrong;
}

int main(int argc, char** argv) {
  int rank = 0, ranks = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 4) MPI_Abort(MPI_COMM_WORLD, 2);
  const int irregular = strcmp(argv[2], "irregular") == 0, blocks = atoi(argv[3]);
  long long* data = malloc(sizeof(long long) * (size_t)blocks);
  for (int i = 0; i < blocks; ++i)
    data[i] = (long long)i * ranks + place(irregular, i, rank, ranks);
  MPI_Datatype type = filetype_of(irregular, blocks, rank, ranks);
  MPI_Barrier(MPI_COMM_WORLD);

  forget_peak();
  const long long before = of_status("VmRSS:");
  const double begin = MPI_Wtime();
  MPI_File fh;
  check(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL,
                      &fh));
  const MPI_Offset at = irregular ? 0 : rank * (MPI_Offset)sizeof(long long);
  check(MPI_File_set_view(fh, at, MPI_INT64_T, type, "native", MPI_INFO_NULL));
  const long long viewed = of_status("VmHWM:") - before;
  check(MPI_File_write_at_all(fh, 0, data, blocks, MPI_INT64_T, MPI_STATUS_IGNORE));
  check(MPI_File_close(&fh));
  const double seconds = MPI_Wtime() - begin;
  long long mine[2] = {of_status("VmHWM:") - before, viewed}, most[2];
  MPI_Reduce(mine, most, 2, MPI_LONG_LONG, MPI_MAX, 0, MPI_COMM_WORLD);

  int wrong = 0;
  if (rank == 0) {
    wrong = wrong_blocks(argv[1], (long long)blocks * ranks);
    printf(
        "{\"peak_bytes\": %lld, \"peak_of_view_bytes\": %lld, \"user_bytes\": %lld, "
        "\"seconds\": %.3f, \"right\": %s}\n",
        most[0], most[1], (long long)blocks * 8, seconds, wrong ? "false" : "true");
  }
  MPI_Type_free(&type);
  free(data);
  MPI_Finalize();
  return wrong;
}
