/* Writes more than the disk holds, asks MPI-IO at every step whether it worked, and says what each
 * rank was told. A careful program: it looks at every return code and every count.
 *
 *   mpiexec -n 4 ./full_disk PATH [MIB_PER_RANK] [collective|independent]
 *
 * Ranks write interleaved blocks of 4 KiB in calls of 1 MiB, then sync and close. One line per
 * rank, written as soon as the rank knows: rank 0 write MPI_ERR_NO_SPACE sync ok close ok calls 6
 * counted_bytes 6291456 elapsed_s 0.021 `write` is the first error of a write. A rank stops at its
 * first error, unless independent.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kBlock = 4096, kCall = 1 << 20 };

struct outcome {
  int write, sync, close; /* error codes */
  int calls;
  long long counted;
};

static const char* class_name(int code) {
  static const struct {
    int class;
    const char* name;
  } names[] = {{MPI_SUCCESS, "ok"},
               {MPI_ERR_NO_SPACE, "MPI_ERR_NO_SPACE"},
               {MPI_ERR_QUOTA, "MPI_ERR_QUOTA"},
               {MPI_ERR_IO, "MPI_ERR_IO"},
               {MPI_ERR_ACCESS, "MPI_ERR_ACCESS"},
               {MPI_ERR_FILE, "MPI_ERR_FILE"},
               {MPI_ERR_OTHER, "MPI_ERR_OTHER"},
               {MPI_ERR_UNKNOWN, "MPI_ERR_UNKNOWN"}};
  static char number[32];
  int class = code;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i)
    if (names[i].class == class) return names[i].name;
  snprintf(number, sizeof number, "class_%d", class);
  return number;
}

static void set_interleaved_view(MPI_File file, int rank, int ranks) {
  MPI_Datatype block, tile;
  MPI_Type_contiguous(kBlock, MPI_BYTE, &block);
  MPI_Type_create_resized(block, 0, (MPI_Aint)kBlock * ranks, &tile);
  MPI_Type_commit(&tile);
  MPI_File_set_view(file, (MPI_Offset)kBlock * rank, MPI_BYTE, tile, "native", MPI_INFO_NULL);
  MPI_Type_free(&tile);
  MPI_Type_free(&block);
}

/* All ranks leave a collective loop together only if the library tells them all; one that is not
 * told goes on, as any program would. */
static void write_all_of_it(MPI_File file, const char* data, int calls, int collective,
                            struct outcome* o) {
  for (; o->calls < calls && (o->write == MPI_SUCCESS || !collective); ++o->calls) {
    MPI_Status status = {0}; /* a call that fails need not set it */
    int count = 0;
    const int code = collective ? MPI_File_write_all(file, data, kCall, MPI_BYTE, &status)
                                : MPI_File_write(file, data, kCall, MPI_BYTE, &status);
    if (o->write == MPI_SUCCESS) o->write = code;
    MPI_Get_count(&status, MPI_BYTE, &count);
    if (count != MPI_UNDEFINED) o->counted += count;
  }
}

static void print_outcome(int rank, struct outcome o, double start) {
  char line[256];
  int n = snprintf(line, sizeof line, "rank %d write %s", rank, class_name(o.write));
  n += snprintf(line + n, sizeof line - (size_t)n, " sync %s", class_name(o.sync));
  n += snprintf(line + n, sizeof line - (size_t)n, " close %s", class_name(o.close));
  snprintf(line + n, sizeof line - (size_t)n, " calls %d counted_bytes %lld elapsed_s %.3f\n",
           o.calls, o.counted, MPI_Wtime() - start);
  fputs(line, stdout);
  fflush(stdout);
}

/* Said before sync and close, because the job may hang in them. */
static void print_progress(int rank, struct outcome o) {
  printf("rank %d told %s after %d calls counted_bytes %lld\n", rank, class_name(o.write), o.calls,
         o.counted);
  fflush(stdout);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int calls = argc > 2 ? atoi(argv[2]) : 16;
  const int collective = argc <= 3 || strcmp(argv[3], "independent") != 0;
  char* data = malloc(kCall);
  if (argc < 2 || calls < 1 || data == NULL) {
    fprintf(stderr, "usage: full_disk PATH [MIB_PER_RANK] [collective|independent]\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  memset(data, 'a' + rank % 26, kCall);

  MPI_File file;
  if (MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL,
                    &file) != MPI_SUCCESS) {
    fprintf(stderr, "full_disk: cannot open %s\n", argv[1]);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
  set_interleaved_view(file, rank, ranks);

  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  struct outcome o = {0};
  write_all_of_it(file, data, calls, collective, &o);
  print_progress(rank, o);
  o.sync = MPI_File_sync(file);
  o.close = MPI_File_close(&file);
  print_outcome(rank, o, start);
  free(data);
  MPI_Finalize();
  return 0;
}
