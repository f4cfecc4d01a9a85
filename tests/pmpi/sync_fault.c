/* The device fails the MPI library's fsync on one rank, of a file that Penstock leaves to it. Every
 * rank is told. `sync_fault FILE`. */
#include "job.h"

static int handled;
static void takes_it(MPI_File* fh, int* code, ...) { (void)fh, (void)code, ++handled; }

int main(int argc, char** argv) {
  const char mine = 'x';
  MPI_File fh;
  MPI_Info info;
  MPI_Errhandler errhandler;
  start_job(argc, argv);
  MPI_Info_create(&info);
  MPI_Info_set(info, "penstock_method", "off");
  CHECK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, info, &fh) ==
        MPI_SUCCESS);
  MPI_Info_free(&info);
  CHECK(MPI_File_write_at_all(fh, rank, &mine, 1, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  MPI_File_create_errhandler(&takes_it, &errhandler);
  MPI_File_set_errhandler(fh, errhandler);
  CHECK(MPI_File_sync(fh) != MPI_SUCCESS); /* OMPIO does not say MPI_ERR_IO */
  CHECK(handled == 1);
  CHECK(MPI_File_sync(fh) == MPI_SUCCESS);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  MPI_Errhandler_free(&errhandler);
  tell("written", 1);
  tell("passed", 1);
  MPI_Finalize();
  return 0;
}
