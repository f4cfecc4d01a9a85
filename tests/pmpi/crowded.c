/* MPI has as many communicators left as the library takes for a file: Penstock has none, and the
 * library alone writes, which is said; the program's own handler, which would end it, hears
 * nothing. When there are some again all is as ever. `crowded FILE`. */
#define _GNU_SOURCE
#include "job.h"
#include "past.h"

enum { MOST = 4000 };

int main(int argc, char** argv) {
  static MPI_Comm all[MOST];
  const char mine = 'x';
  char read = 0;
  int n = 0;
  MPI_File fh;
  start_job(argc, argv);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  while (n < MOST && MPI_Comm_dup(MPI_COMM_SELF, &all[n]) == MPI_SUCCESS) ++n;
  CHECK(n < MOST);
  for (int rc = MPI_ERR_OTHER; rc != MPI_SUCCESS;) {
    CHECK(n > 0);
    MPI_Comm_free(&all[--n]);
    rc = open_past_penstock(path, MPI_MODE_CREATE | MPI_MODE_RDWR, &fh);
  }
  CHECK(close_past_penstock(&fh) == MPI_SUCCESS);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  fh = open_as(MPI_MODE_CREATE | MPI_MODE_RDWR);
  CHECK(MPI_File_write_at(fh, rank, &mine, 1, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  CHECK(read_back(path, rank, &read, 1) == 1 && read == mine);
  while (n > 0) MPI_Comm_free(&all[--n]);
  fh = open_as(MPI_MODE_RDWR);
  CHECK(MPI_File_write_at_all(fh, rank, &mine, 1, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  return end_job(1, 0);
}
