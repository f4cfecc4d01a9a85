/* The MPI library is out of the linker's sight, as in Python: a module that needs it was loaded,
 * and finds what is preloaded before it. `unlinked LIBRARY FILE`, one rank. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { n = 1000 };

typedef int (*mpi_function)();

static mpi_function function(void* mpi, const char* name) {
  void* found = dlsym(RTLD_DEFAULT, name);
  if (found == NULL) found = dlsym(mpi, name);
  if (found == NULL) exit(2);
  return (mpi_function)found;
}

static void need(int rc, const char* what) {
  if (rc == MPI_SUCCESS) return;
  fprintf(stderr, "%s failed\n", what);
  exit(3);
}

int main(int argc, char** argv) {
  void* mpi = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (mpi == NULL) return 2;
  char data[n];
  memset(data, 'd', n);
  MPI_File fh;
  need(function(mpi, "MPI_Init")(&argc, &argv), "MPI_Init");
  need(function(mpi, "MPI_File_open")(MPI_COMM_WORLD, argv[2], MPI_MODE_CREATE | MPI_MODE_WRONLY,
                                      MPI_INFO_NULL, &fh),
       "MPI_File_open");
  need(function(mpi, "MPI_File_write_at")(fh, (MPI_Offset)0, data, (int)n, MPI_BYTE,
                                          MPI_STATUS_IGNORE),
       "MPI_File_write_at");
  need(function(mpi, "MPI_File_close")(&fh), "MPI_File_close");
  printf("written %d\n", n);
  need(function(mpi, "MPI_Finalize")(), "MPI_Finalize");
  return 0;
}
