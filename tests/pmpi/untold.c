/* What was lost, and calls that only start something: these do not tell it, so that what they have
 * started is waited for, and the next call that ends what it does tells it. And what a split write
 * came to that is over where it began and never ended; a loss beside wrong arguments; and requests
 * that are looked at, freed and cancelled. `untold FILE`, any number of ranks. */
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "job.h"

enum { n = 5000, most_ranks = 64 };

static char data[n], got[n];
static long long written;
static MPI_File fh;
static struct rlimit unlimited;

static MPI_Offset mine(void) { return (MPI_Offset)rank * n; }
static MPI_Offset beyond(void) { return (MPI_Offset)(most_ranks + rank) * n; }

/* No file grows beyond what `most_ranks` have. */
static void limit(void) {
  struct rlimit small = unlimited;
  MPI_Barrier(MPI_COMM_WORLD);
  small.rlim_cur = (rlim_t)most_ranks * n;
  CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
}

static void open_it(void) {
  fh = open_fresh();
  for (int i = 0; i < 2; ++i) {
    const MPI_Offset at = mine() + (MPI_Offset)i * ranks * n;
    CHECK(MPI_File_write_at(fh, at, data, n, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  }
  written += 2 * n;
  CHECK(MPI_File_sync(fh) == MPI_SUCCESS);
  limit();
}

static void close_it(int expected) {
  CHECK(class_of(MPI_File_close(&fh)) == expected);
  CHECK(setrlimit(RLIMIT_FSIZE, &unlimited) == 0);
}

static void lose_on_first_rank(void) {
  MPI_Request request;
  if (rank != 0) return;
  CHECK(MPI_File_iwrite_at(fh, beyond(), data, n, MPI_BYTE, &request) == MPI_SUCCESS);
  CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

static int read_mine(void) {
  return class_of(MPI_File_read_at(fh, mine(), got, n, MPI_BYTE, MPI_STATUS_IGNORE));
}

static void a_read_that_starts(void) {
  MPI_Request request;
  open_it();
  lose_on_first_rank();
  CHECK(MPI_File_iread_at(fh, mine(), got, n, MPI_BYTE, &request) == MPI_SUCCESS);
  CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS && memcmp(got, data, n) == 0);
  CHECK(read_mine() == (rank == 0 ? MPI_ERR_IO : MPI_SUCCESS));
  CHECK(read_mine() == MPI_SUCCESS);
  close_it(MPI_ERR_IO);
}

/* A rank that heard of the loss in the beginning might leave out the end. */
static void a_split_read_that_starts(void) {
  open_it();
  lose_on_first_rank();
  for (int i = 0; i < 2; ++i) {
    CHECK(MPI_File_read_ordered_begin(fh, got, n, MPI_BYTE) == MPI_SUCCESS);
    CHECK(MPI_File_read_ordered_end(fh, got, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  }
  CHECK(class_of(MPI_File_sync(fh)) == MPI_ERR_IO);
  close_it(MPI_ERR_IO);
}

static void lose_what_is_known(void) {
  MPI_Offset size = 0;
  open_it();
  lose_on_first_rank();
  CHECK(MPI_File_get_size(fh, &size) == MPI_SUCCESS); /* it is known now, and untold */
}

static void wrong_arguments(void) {
  MPI_Request request;
  lose_what_is_known();
  const int told = class_of(MPI_File_iwrite_at(fh, mine(), data, -1, MPI_BYTE, &request));
  CHECK(rank == 0 ? told == MPI_ERR_IO : told != MPI_SUCCESS);
  CHECK(class_of(MPI_File_write_at(fh, mine(), data, n, MPI_BYTE, MPI_STATUS_IGNORE)) ==
        MPI_SUCCESS);
  written += n;
  close_it(MPI_ERR_IO);
}

/* Likewise, and it is the library that refuses them. */
static void refused_by_the_library(void) {
  lose_what_is_known();
  const int told = class_of(MPI_File_seek(fh, -1000000000, MPI_SEEK_END));
  CHECK(rank == 0 ? told == MPI_ERR_IO : told != MPI_SUCCESS);
  CHECK(read_mine() == MPI_SUCCESS);
  close_it(MPI_ERR_IO);
  lose_what_is_known();
  CHECK(class_of(MPI_File_set_size(fh, -1)) == MPI_ERR_IO);
  CHECK(read_mine() == MPI_SUCCESS);
  close_it(MPI_ERR_IO);
}

/* It looks for the end of the file, and has lost nothing itself. */
static void a_second_handle(void) {
  MPI_File other;
  open_it();
  lose_on_first_rank();
  CHECK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR | MPI_MODE_APPEND, MPI_INFO_NULL,
                      &other) == MPI_SUCCESS);
  CHECK(MPI_File_close(&other) == MPI_SUCCESS);
  CHECK(read_mine() == (rank == 0 ? MPI_ERR_IO : MPI_SUCCESS));
  close_it(MPI_ERR_IO);
}

/* In atomic mode the beginning does it all. */
static void a_write_that_is_never_ended(int atomic) {
  open_it();
  CHECK(MPI_File_set_atomicity(fh, atomic) == MPI_SUCCESS);
  const MPI_Offset at = rank == 0 ? beyond() : mine();
  CHECK(MPI_File_write_at_all_begin(fh, at, data, n, MPI_BYTE) == MPI_SUCCESS);
  if (rank != 0) written += n;
  close_it(MPI_ERR_IO);
}

static void requests(void) {
  MPI_Request request;
  MPI_Status status;
  int done = 0;
  fh = open_fresh();
  CHECK(MPI_File_iwrite_at(fh, mine(), data, n, MPI_BYTE, &request) == MPI_SUCCESS);
  CHECK(MPI_Request_get_status(request, &done, &status) == MPI_SUCCESS && done);
  CHECK(bytes_of(&status) == n && request != MPI_REQUEST_NULL);
  CHECK(MPI_Wait(&request, &status) == MPI_SUCCESS && bytes_of(&status) == n);
  CHECK(MPI_File_iwrite_at_all(fh, mine() + (MPI_Offset)ranks * n, data, n, MPI_BYTE, &request) ==
        MPI_SUCCESS);
  CHECK(MPI_Request_free(&request) == MPI_SUCCESS && request == MPI_REQUEST_NULL);
  CHECK(MPI_File_iwrite_at(fh, mine() + 2 * (MPI_Offset)ranks * n, data, n, MPI_BYTE, &request) ==
        MPI_SUCCESS);
  CHECK(MPI_Cancel(&request) == MPI_SUCCESS); /* too late */
  CHECK(MPI_Wait(&request, &status) == MPI_SUCCESS);
  CHECK(MPI_Test_cancelled(&status, &done) == MPI_SUCCESS && !done);
  written += 3 * n;
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  for (int i = 0; i < 3; ++i) {
    CHECK(read_back(path, (long)mine() + (long)i * ranks * n, got, n) == n);
    CHECK(memcmp(got, data, n) == 0);
  }
}

int main(int argc, char** argv) {
  start_job(argc, argv);
  CHECK(2 * ranks <= most_ranks);
  signal(SIGXFSZ, SIG_IGN);
  CHECK(getrlimit(RLIMIT_FSIZE, &unlimited) == 0);
  memset(data, 'd', n);
  a_read_that_starts();
  a_split_read_that_starts();
  wrong_arguments();
  refused_by_the_library();
  a_second_handle();
  a_write_that_is_never_ended(1);
  a_write_that_is_never_ended(0);
  requests();
  tell("written", written);
  MPI_Finalize();
  return 0;
}
