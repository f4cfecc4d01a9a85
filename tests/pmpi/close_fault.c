/* The device fails the descriptor that the MPI library closes on one rank (from outside: a
 * preloaded library), after Penstock's own. Every rank is told, and the line at the end counts it.
 * `close_fault FILE`. */
#include "job.h"

int main(int argc, char** argv) {
  const char mine = 'x';
  start_job(argc, argv);
  MPI_File fh = open_as(MPI_MODE_CREATE | MPI_MODE_RDWR);
  CHECK(MPI_File_write_at_all(fh, rank, &mine, 1, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  CHECK(class_of(MPI_File_close(&fh)) == MPI_ERR_IO);
  tell("written", 1);
  MPI_Finalize();
  return 0;
}
