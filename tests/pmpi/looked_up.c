/* Calls at the shared file pointer that no library imports, as of a program whose language looks
 * functions up by name. `looked_up FILE`, any number of ranks. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#include "job.h"

static long long written, passed;

static int write_shared(MPI_File fh, const char* bytes) {
  int (*write)(MPI_File, const void*, int, MPI_Datatype, MPI_Status*);
  *(void**)&write = dlsym(RTLD_DEFAULT, "MPI_File_write_shared");
  CHECK(write != NULL);
  written += (long long)strlen(bytes);
  passed += (long long)strlen(bytes);
  return write(fh, bytes, (int)strlen(bytes), MPI_BYTE, MPI_STATUS_IGNORE);
}

static MPI_Offset shared_position(MPI_File fh) {
  int (*get)(MPI_File, MPI_Offset*);
  MPI_Offset at = -1;
  *(void**)&get = dlsym(RTLD_DEFAULT, "MPI_File_get_position_shared");
  CHECK(get != NULL && get(fh, &at) == MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  return at;
}

/* The library's own file has this view already, and its pointer goes back all the same. */
static void set_bytes(MPI_File fh) {
  CHECK(MPI_File_set_view(fh, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL) == MPI_SUCCESS);
  CHECK(shared_position(fh) == 0);
}

static void write_twice(MPI_File fh, const char* first, const char* second) {
  if (rank == 0) CHECK(write_shared(fh, first) == MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  set_bytes(fh);
  if (rank == 0) CHECK(write_shared(fh, second) == MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* An open that appends puts the library's pointers at the end; so of 4 bytes, the first two are
 * written again. */
static void begin_again(void) {
  MPI_File fh;
  CHECK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_WRONLY | MPI_MODE_APPEND, MPI_INFO_NULL,
                      &fh) == MPI_SUCCESS);
  set_bytes(fh);
  if (rank == 0) CHECK(write_shared(fh, "xy") == MPI_SUCCESS);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
}

int main(int argc, char** argv) {
  char got[16];
  start_job(argc, argv);
  MPI_File fh = open_fresh();
  write_twice(fh, "abcd", "ABC");
  set_bytes(fh);
  write_twice(fh, "01", "2");
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  CHECK(read_back(path, 0, got, (long)sizeof got) == 4 && memcmp(got, "21Cd", 4) == 0);
  begin_again();
  CHECK(read_back(path, 0, got, (long)sizeof got) == 4 && memcmp(got, "xyCd", 4) == 0);
  return end_job(written, passed);
}
