/* Another MPI library is in the process, as with a plugin that is linked to it, and the program has
 * nothing to do with it: `two_libraries LIBRARY FILE`, any number of ranks. */
#include <dlfcn.h>
#include <string.h>

#include "job.h"

enum { kBytes = 1000 };

int main(int argc, char** argv) {
  if (argc != 3 || dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) == NULL) {
    fprintf(stderr, "two_libraries LIBRARY FILE: %s\n", argc == 3 ? dlerror() : "two arguments");
    return 2;
  }
  start_job(argc - 1, argv + 1);
  char data[kBytes], back[kBytes];
  memset(data, 'a' + rank, sizeof data);
  MPI_File fh = open_fresh();
  CHECK(MPI_File_write_at_all(fh, rank * kBytes, data, kBytes, MPI_BYTE, MPI_STATUS_IGNORE) ==
        MPI_SUCCESS);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  CHECK(read_back(path, rank * kBytes, back, kBytes) == kBytes);
  CHECK(memcmp(data, back, kBytes) == 0);
  tell("written", kBytes);
  MPI_Finalize();
  return 0;
}
