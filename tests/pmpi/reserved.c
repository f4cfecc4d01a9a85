/* What a write was told is accepted has its room before MPI_File_preallocate gives the rest of the
 * disk away: it is in the file when the room is asked for. `reserved FILE`. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "job.h"

enum { ACCEPTED = 4096, RESERVED = 1 << 20 };

static long long in_file_at_call = -1;

/* The engine's call comes here. */
__attribute__((visibility("default"))) int fallocate(int fd, int mode, off_t offset, off_t length) {
  struct stat seen;
  if (length == RESERVED && fstat(fd, &seen) == 0) in_file_at_call = (long long)seen.st_size;
  return (int)syscall(SYS_fallocate, fd, mode, offset, length);
}

int main(int argc, char** argv) {
  static char bytes[ACCEPTED];
  start_job(argc, argv);
  if (rank == 0) remove(path);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File fh = open_as(MPI_MODE_CREATE | MPI_MODE_WRONLY);
  CHECK(MPI_File_write_at(fh, (MPI_Offset)rank * ACCEPTED, bytes, ACCEPTED, MPI_BYTE,
                          MPI_STATUS_IGNORE) == MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(MPI_File_preallocate(fh, RESERVED) == MPI_SUCCESS);
  if (rank == 0) CHECK(in_file_at_call == (long long)ranks * ACCEPTED);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  tell("written", ACCEPTED);
  MPI_Finalize();
  return 0;
}
