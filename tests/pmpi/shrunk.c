/* A job that goes on without its last rank, which died by SIGKILL: `shrunk WHAT FILE`, by ULFM, two
 * ranks or more. Without MPI_Finalize, in which Open MPI 5.0 may then wait for ever.
 *   served  the others write a file together, on the communicator of MPIX_Comm_shrink
 *   closed  the others close a file that all had written: that ends the job
 *   synced  likewise, and they sync it */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { BYTES = 1000, TURNS = 20 };

/* Built against the header of Open MPI 4.1, run with the library of 5. */
__attribute__((weak)) int MPIX_Comm_shrink(MPI_Comm comm, MPI_Comm* alive);

static MPI_File open_on(MPI_Comm comm, const char* path) {
  MPI_File fh;
  CHECK(MPI_File_open(comm, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &fh) ==
        MPI_SUCCESS);
  return fh;
}

/* By collective calls and by independent ones. What all have written then. */
static long write_turns(MPI_Comm comm, MPI_File fh) {
  char data[BYTES];
  int rank, ranks;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  memset(data, 'a' + rank, sizeof data);
  for (int turn = 0; turn < TURNS; ++turn) {
    const MPI_Offset at = (MPI_Offset)BYTES * (turn * ranks + rank);
    const int rc = turn % 2 == 0
                       ? MPI_File_write_at_all(fh, at, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE)
                       : MPI_File_write_at(fh, at, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    CHECK(rc == MPI_SUCCESS);
  }
  return (long)BYTES * TURNS * ranks;
}

static long write_and_close(MPI_Comm comm, const char* path) {
  MPI_File fh = open_on(comm, path);
  const long written = write_turns(comm, fh);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  CHECK(MPI_Barrier(comm) == MPI_SUCCESS);
  return written;
}

static void check_turns(const char* path, int ranks) {
  char data[BYTES];
  for (int i = 0; i < TURNS * ranks; ++i) {
    CHECK(read_back(path, (long)BYTES * i, data, BYTES) == BYTES);
    for (int k = 0; k < BYTES; ++k) CHECK(data[k] == 'a' + i % ranks);
  }
}

/* Of MPI_COMM_WORLD; who returns knows that it is dead. */
static MPI_Comm without_the_last(int rank, int ranks) {
  MPI_Comm alive;
  int places;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == ranks - 1) raise(SIGKILL);
  CHECK(MPIX_Comm_shrink(MPI_COMM_WORLD, &alive) == MPI_SUCCESS);
  MPI_Comm_size(alive, &places);
  CHECK(places == ranks - 1);
  return alive;
}

/* What an open keeps with a communicator goes over to the one that is made of it. */
static void go_on(const char* path, int rank, int ranks) {
  const long before = write_and_close(MPI_COMM_WORLD, path);
  if (rank == 0) CHECK(remove(path) == 0);
  MPI_Comm alive = without_the_last(rank, ranks);
  const long written = write_and_close(alive, path);
  check_turns(path, ranks - 1);
  CHECK(MPI_Barrier(alive) == MPI_SUCCESS);
  if (rank == 0) printf("written %ld\n", before + written);
}

static void end_with_a_file(const char* what, const char* path, int rank, int ranks) {
  MPI_File fh = open_on(MPI_COMM_WORLD, path);
  const long written = write_turns(MPI_COMM_WORLD, fh);
  if (rank == 0) printf("written %ld\n", written);
  fflush(stdout);
  without_the_last(rank, ranks);
  if (strcmp(what, "synced") == 0)
    MPI_File_sync(fh);
  else
    MPI_File_close(&fh);
  CHECK(!"ranks that decide something with a dead one go on");
}

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  CHECK(argc == 3);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (strcmp(argv[1], "served") == 0)
    go_on(argv[2], rank, ranks);
  else
    end_with_a_file(argv[1], argv[2], rank, ranks);
  fflush(stdout);
  _exit(0);
}
