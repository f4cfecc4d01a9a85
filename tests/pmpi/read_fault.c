/* A collective read during which the device fails one rank's read (from outside: a preloaded
 * library). Every rank is told, with the same class, and nobody hangs. `read_fault FILE`. */
#include <string.h>

#include "job.h"

enum { n = 1 << 20 };

static char memory[n];

int main(int argc, char** argv) {
  start_job(argc, argv);
  MPI_File fh = open_as(MPI_MODE_CREATE | MPI_MODE_RDWR);
  memset(memory, 'a' + rank, n);
  CHECK(MPI_File_write_at_all(fh, (MPI_Offset)rank * n, memory, n, MPI_BYTE, MPI_STATUS_IGNORE) ==
        MPI_SUCCESS);
  /* Interleaved, so that ranks read for each other. */
  MPI_Datatype one, tile;
  MPI_Type_contiguous(1000, MPI_BYTE, &one);
  MPI_Type_create_resized(one, 0, 1000 * ranks, &tile);
  MPI_Type_commit(&tile);
  CHECK(MPI_File_set_view(fh, 1000 * rank, MPI_BYTE, tile, "native", MPI_INFO_NULL) == MPI_SUCCESS);
  MPI_Status status;
  const int code = class_of(MPI_File_read_at_all(fh, 0, memory, n / 2, MPI_BYTE, &status));
  const int bytes = bytes_of(&status);
  int least = code, most = code;
  MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  CHECK(least == most);
  CHECK(most == MPI_ERR_IO);
  CHECK(bytes >= 0 && bytes <= n / 2);
  for (int i = 0; i < bytes; ++i) {
    const long long at = ((long long)(i / 1000) * ranks + rank) * 1000 + i % 1000;
    CHECK(memory[i] == 'a' + at / n);
  }
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  tell("written", n);
  tell("read", bytes);
  MPI_Finalize();
  return 0;
}
