/* One measured cell: an MPI-IO program that knows nothing of Penstock writes one
 * pattern collectively and prints how long it took, as one line of JSON.
 *
 *   cell NAME FILE MIB_PER_RANK CALLS SYNC
 *
 * NAME: contiguous | interleaved:BYTES | subarray3d
 *   contiguous       every rank one block of the file, one part of it per call
 *   interleaved:B    ranks take turns with blocks of B bytes (a vector file view)
 *   subarray3d       a cube of doubles split over ranks in z, y, x (MPI_Dims_create)
 * SYNC: 1 ends with MPI_File_sync, 0 leaves the bytes in the page cache.
 * The clock runs from before the open to after the close, slowest rank. */
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int rank, ranks;

static void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length;
  MPI_Error_string(code, text, &length);
  fprintf(stderr, "cell: %s: %s\n", what, text);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Memory that was just used is handed out faster than memory that went cold: every
 * competitor starts with the same warm memory. */
static void warm_memory(size_t bytes) {
  char* p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return;
  madvise(p, bytes, MADV_HUGEPAGE);
  for (size_t i = 0; i < bytes; i += 4096) p[i] = 1;
  munmap(p, bytes);
}

/* What a call writes: `count` of `type` through the view, `bytes` of data. */
struct Pattern {
  MPI_Datatype filetype, type;
  MPI_Offset displacement;
  int count;
  size_t bytes;
};

static struct Pattern interleaved(size_t block, size_t bytes_per_call, int calls) {
  struct Pattern p = {.type = MPI_BYTE};
  size_t blocks = bytes_per_call / block;
  if (blocks == 0) blocks = 1;
  MPI_Datatype one;
  MPI_Type_contiguous((int)block, MPI_BYTE, &one);
  MPI_Type_create_resized(one, 0, (MPI_Aint)(block * (size_t)ranks), &p.filetype);
  MPI_Type_free(&one);
  p.displacement = (MPI_Offset)(block * (size_t)rank);
  p.bytes = blocks * block;
  p.count = (int)p.bytes;
  (void)calls;
  return p;
}

static struct Pattern subarray3d(size_t bytes_per_call) {
  struct Pattern p = {.type = MPI_DOUBLE};
  int dims[3] = {0, 0, 0}, n = (int)cbrt((double)(bytes_per_call * (size_t)ranks / 8));
  MPI_Dims_create(ranks, 3, dims);
  int at[3] = {rank / (dims[1] * dims[2]), rank / dims[2] % dims[1], rank % dims[2]};
  int sizes[3], subsizes[3], starts[3];
  p.count = 1;
  for (int d = 0; d < 3; ++d) {
    subsizes[d] = n / dims[2 - d];
    sizes[d] = subsizes[d] * dims[2 - d];
    starts[d] = subsizes[d] * at[2 - d];
    p.count *= subsizes[d];
  }
  /* The fastest dimension is split first, so that rows of ranks interleave. */
  MPI_Type_create_subarray(3, sizes, subsizes, starts, MPI_ORDER_C, MPI_DOUBLE, &p.filetype);
  p.bytes = (size_t)p.count * 8;
  return p;
}

static struct Pattern make_pattern(const char* name, size_t bytes_per_call, int calls) {
  if (!strncmp(name, "interleaved:", 12))
    return interleaved(strtoul(name + 12, NULL, 10), bytes_per_call, calls);
  if (!strcmp(name, "subarray3d")) return subarray3d(bytes_per_call);
  if (strcmp(name, "contiguous")) {
    fprintf(stderr, "cell: no such pattern: %s (contiguous, interleaved:BYTES, subarray3d)\n",
            name);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  struct Pattern p = {.type = MPI_BYTE, .count = (int)bytes_per_call, .bytes = bytes_per_call};
  p.displacement = (MPI_Offset)(bytes_per_call * (size_t)calls) * rank;
  MPI_Type_dup(MPI_BYTE, &p.filetype);
  return p;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 6) {
    if (rank == 0) fprintf(stderr, "usage: cell NAME FILE MIB_PER_RANK CALLS SYNC\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int calls = atoi(argv[4]), sync_at_end = atoi(argv[5]);
  struct Pattern p =
      make_pattern(argv[1], (size_t)(atof(argv[3]) * 1048576) / (size_t)calls, calls);
  MPI_Type_commit(&p.filetype);
  char* data = malloc(p.bytes);
  for (size_t i = 0; i < p.bytes; ++i) data[i] = (char)(i * 7 + (size_t)rank * 131);
  if (rank == 0) unlink(argv[2]);
  warm_memory((size_t)3 << 30 >> (ranks > 1));
  MPI_Barrier(MPI_COMM_WORLD);

  const double begin = MPI_Wtime();
  MPI_File file;
  check(MPI_File_open(MPI_COMM_WORLD, argv[2], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL,
                      &file),
        "open");
  check(MPI_File_set_view(file, p.displacement, p.type, p.filetype, "native", MPI_INFO_NULL),
        "set_view");
  for (int i = 0; i < calls; ++i)
    check(MPI_File_write_all(file, data, p.count, p.type, MPI_STATUS_IGNORE), "write_all");
  if (sync_at_end) check(MPI_File_sync(file), "sync");
  check(MPI_File_close(&file), "close");
  double mine = MPI_Wtime() - begin, slowest;
  MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0)
    printf("{\"seconds\": %.6f, \"bytes\": %zu}\n", slowest,
           p.bytes * (size_t)calls * (size_t)ranks);
  MPI_Type_free(&p.filetype);
  free(data);
  MPI_Finalize();
  return 0;
}
