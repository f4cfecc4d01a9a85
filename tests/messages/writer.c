/* What a new user's program does: `writer FILE [HOW]` writes one MiB per rank with MPI-IO and says
 * whether that worked. HOW: shared (the shared file pointer), sleep (waits to be stopped), killed,
 * exits (each rank by itself, and nothing comes after it). */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char data[1 << 20];

static int failed(const char* what, int rc) {
  char text[MPI_MAX_ERROR_STRING];
  int n = 0, class = 0, rank;
  if (rc == MPI_SUCCESS) return 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Error_class(rc, &class);
  MPI_Error_string(class, text, &n);
  if (rank == 0) printf("writer: %s: %.*s\n", what, (int)strcspn(text, "\n"), text);
  fflush(stdout);
  MPI_Finalize();
  return 1;
}

int main(int argc, char** argv) {
  const char* how = argc > 2 ? argv[2] : "";
  MPI_File fh;
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (failed("open", MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY,
                                   MPI_INFO_NULL, &fh))) {
    return 1;
  }
  if (strcmp(how, "exits") == 0) {
    const MPI_Offset at = (MPI_Offset)sizeof data * rank + 1000;
    exit(MPI_File_write_at(fh, at, data, sizeof data, MPI_BYTE, MPI_STATUS_IGNORE));
  }
  const int rc = strcmp(how, "shared") == 0
                     ? MPI_File_write_shared(fh, data, sizeof data, MPI_BYTE, MPI_STATUS_IGNORE)
                     : MPI_File_write_at_all(fh, (MPI_Offset)sizeof data * rank, data, sizeof data,
                                             MPI_BYTE, MPI_STATUS_IGNORE);
  if (failed("write", rc)) return 1;
  if (strcmp(how, "sleep") == 0) sleep(30);
  if (strcmp(how, "killed") == 0 && rank == 1) raise(SIGKILL);
  if (failed("close", MPI_File_close(&fh))) return 1;
  MPI_Finalize();
  return 0;
}
