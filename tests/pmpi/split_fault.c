/* A split write that the MPI library does for an unserved file, and that fails at its end (Open
 * MPI) or where it begins: the log counts one error, and no byte. `split_fault FILE`, one rank. */
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "job.h"

enum { N = 70000 };

int main(int argc, char** argv) {
  static char data[N];
  const struct rlimit at_most = {4096, 4096};
  start_job(argc, argv);
  signal(SIGXFSZ, SIG_IGN);
  MPI_File fh = open_as(MPI_MODE_CREATE | MPI_MODE_RDWR);
  CHECK(setrlimit(RLIMIT_FSIZE, &at_most) == 0);
  const int begun = MPI_File_write_at_all_begin(fh, 8192, data, N, MPI_BYTE);
  const int ended =
      begun == MPI_SUCCESS ? MPI_File_write_at_all_end(fh, data, MPI_STATUS_IGNORE) : MPI_SUCCESS;
  CHECK(begun != MPI_SUCCESS || ended != MPI_SUCCESS);
  (void)MPI_File_close(&fh);
  return end_job(0, 0);
}
