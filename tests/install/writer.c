/* Each rank writes 1000 bytes of its own letter, collectively, and rank 0 prints every mapped file
 * of Penstock's: which installation served it is then known, not assumed. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { BYTES = 1000 };

static void print_mapped(void) {
  char line[4096], last[4096] = "";
  FILE* maps = fopen("/proc/self/maps", "r");
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
    const char* path = strchr(line, '/');
    if (path == NULL || strstr(path, "penstock-") == NULL || strcmp(path, last) == 0) continue;
    printf("mapped %s", path);
    snprintf(last, sizeof last, "%s", path);
  }
  if (maps != NULL) fclose(maps);
}

int main(int argc, char** argv) {
  int rank;
  char mine[BYTES];
  MPI_File file;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  memset(mine, 'a' + rank, sizeof mine);
  int bad = MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL,
                          &file) != MPI_SUCCESS;
  if (bad) MPI_Abort(MPI_COMM_WORLD, 3);
  bad = MPI_File_write_at_all(file, (MPI_Offset)rank * BYTES, mine, BYTES, MPI_BYTE,
                              MPI_STATUS_IGNORE) != MPI_SUCCESS;
  if (rank == 0) print_mapped();
  bad |= MPI_File_close(&file) != MPI_SUCCESS;
  MPI_Finalize();
  return bad;
}
