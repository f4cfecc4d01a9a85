/* Of a library that cannot say where its shared file pointer is (Open MPI's component
 * `individual`), a write in rank order is its own. `unpointed FILE`, one rank. */
#include <string.h>

#include "job.h"

int main(int argc, char** argv) {
  const int value = 7;
  int got[2];
  start_job(argc, argv);
  MPI_File fh = open_fresh();
  CHECK(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL) == MPI_SUCCESS);
  CHECK(MPI_File_write_ordered(fh, &value, 1, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  CHECK(read_back(path, 0, got, (long)sizeof got) == (long)sizeof value && got[0] == value);
  return end_job(sizeof value, sizeof value);
}
