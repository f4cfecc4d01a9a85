/* Every non-blocking and split write that Penstock takes: requests are complete at once, buffers
 * are the program's again, and whatever asks about the file afterwards finds the bytes in it. And
 * bytes that were accepted and cannot be written: the next call, sync and close say so. `overlap
 * FILE`, any number of ranks. */
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "job.h"

enum { n = 70000, slots = 12 };

static char data[n], more[n], got[n];
static long long written;
static MPI_File fh;

static MPI_Offset mine(int slot) { return (MPI_Offset)(slot * ranks + rank) * n; }

static void next(int value) {
  memset(data, value, n);
  written += n;
}

/* Complete when it is staged: a Test says so without any progress. The buffer is ours again. */
static void finish(MPI_Request* request) {
  MPI_Status status;
  int done = 0, bytes = 0;
  CHECK(MPI_Test(request, &done, &status) == MPI_SUCCESS && done);
  CHECK(MPI_Get_elements(&status, MPI_BYTE, &bytes) == MPI_SUCCESS && bytes == n);
  memset(data, '!', n);
}

static void check_plain(int slot, int value) {
  CHECK(read_back(path, (long)mine(slot), got, n) == n);
  for (int i = 0; i < n; ++i) CHECK(got[i] == value);
}

static void check_read(int slot, int value) {
  memset(got, 0, n);
  CHECK(MPI_File_read_at(fh, mine(slot), got, n, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  for (int i = 0; i < n; ++i) CHECK(got[i] == value);
}

static void independent(void) {
  MPI_Request request;
  MPI_Offset size = 0;
  next(1);
  CHECK(MPI_File_iwrite_at(fh, mine(0), data, n, MPI_BYTE, &request) == MPI_SUCCESS);
  finish(&request);
  check_read(0, 1); /* a read finds it */
  next(2);
  CHECK(MPI_File_seek(fh, mine(1), MPI_SEEK_SET) == MPI_SUCCESS);
  CHECK(MPI_File_iwrite(fh, data, n, MPI_BYTE, &request) == MPI_SUCCESS);
  finish(&request);
  CHECK(MPI_File_get_size(fh, &size) == MPI_SUCCESS); /* the size knows it */
  CHECK(size >= mine(1) + n);
  check_plain(1, 2);
  next(3);
  CHECK(MPI_File_iwrite_at(fh, mine(2), data, n, MPI_BYTE, &request) == MPI_SUCCESS);
  finish(&request);
  CHECK(MPI_File_seek(fh, 0, MPI_SEEK_END) == MPI_SUCCESS); /* the end is behind it */
  check_plain(2, 3);
  CHECK(MPI_File_get_position(fh, &size) == MPI_SUCCESS && size >= mine(2) + n);
  next(4); /* a blocking write over it comes later */
  CHECK(MPI_File_iwrite_at(fh, mine(3), data, n, MPI_BYTE, &request) == MPI_SUCCESS);
  finish(&request);
  next(5);
  CHECK(MPI_File_write_at(fh, mine(3), data, n, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  check_plain(3, 5);
}

static void collective(void) {
  MPI_Request requests[2];
  MPI_Status statuses[2];
  next(6);
  CHECK(MPI_File_iwrite_at_all(fh, mine(4), data, n, MPI_BYTE, &requests[0]) == MPI_SUCCESS);
  memset(more, 7, n); /* both are under way */
  written += n;
  CHECK(MPI_File_seek(fh, mine(5), MPI_SEEK_SET) == MPI_SUCCESS);
  CHECK(MPI_File_iwrite_all(fh, more, n, MPI_BYTE, &requests[1]) == MPI_SUCCESS);
  CHECK(MPI_Waitall(2, requests, statuses) == MPI_SUCCESS);
  /* A collective read finds what other ranks staged. */
  const int other = (rank + 1) % ranks;
  const MPI_Offset there = (MPI_Offset)(4 * ranks + other) * n;
  CHECK(MPI_File_read_at_all(fh, there, got, n, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  for (int i = 0; i < n; ++i) CHECK(got[i] == 6);
  check_plain(5, 7);
}

static void split(void) {
  MPI_Status status;
  int bytes = 0;
  next(8);
  CHECK(MPI_File_write_at_all_begin(fh, mine(6), data, n, MPI_BYTE) == MPI_SUCCESS);
  CHECK(MPI_File_write_at_all_end(fh, data, &status) == MPI_SUCCESS);
  CHECK(MPI_Get_elements(&status, MPI_BYTE, &bytes) == MPI_SUCCESS && bytes == n);
  check_plain(6, 8);
  next(9);
  CHECK(MPI_File_seek(fh, mine(7), MPI_SEEK_SET) == MPI_SUCCESS);
  CHECK(MPI_File_write_all_begin(fh, data, n, MPI_BYTE) == MPI_SUCCESS);
  CHECK(MPI_File_write_all_end(fh, data, &status) == MPI_SUCCESS);
  check_plain(7, 9);
}

/* Interleaved, in a view that changes while the bytes may still be staged. */
static void views(void) {
  MPI_Datatype tile;
  MPI_Request request;
  MPI_Type_create_resized(MPI_BYTE, 0, ranks, &tile);
  MPI_Type_commit(&tile);
  next(10);
  CHECK(MPI_File_set_view(fh, (MPI_Offset)8 * ranks * n + rank, MPI_BYTE, tile, "native",
                          MPI_INFO_NULL) == MPI_SUCCESS);
  CHECK(MPI_File_iwrite_all(fh, data, n, MPI_BYTE, &request) == MPI_SUCCESS);
  finish(&request);
  CHECK(MPI_File_set_view(fh, (MPI_Offset)9 * ranks * n + rank, MPI_BYTE, tile, "native",
                          MPI_INFO_NULL) == MPI_SUCCESS);
  next(11);
  CHECK(MPI_File_write_all_begin(fh, data, n, MPI_BYTE) == MPI_SUCCESS);
  CHECK(MPI_File_write_all_end(fh, data, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  CHECK(MPI_File_set_view(fh, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL) == MPI_SUCCESS);
  MPI_Type_free(&tile);
  MPI_Barrier(MPI_COMM_WORLD); /* every tile is of all ranks */
  check_plain(8, 10);
  check_plain(9, 11);
}

/* A call that sizes the file comes after every rank's staged bytes. */
static void sizes(void) {
  MPI_Request request;
  next(12);
  CHECK(MPI_File_iwrite_at(fh, mine(10), data, n, MPI_BYTE, &request) == MPI_SUCCESS);
  finish(&request);
  CHECK(MPI_File_set_size(fh, (MPI_Offset)11 * ranks * n) == MPI_SUCCESS);
  check_plain(10, 12);
  next(13);
  CHECK(MPI_File_iwrite_at(fh, mine(11), data, n, MPI_BYTE, &request) == MPI_SUCCESS);
  finish(&request);
  CHECK(MPI_File_sync(fh) == MPI_SUCCESS);
  check_plain(11, 13);
}

/* No file may grow beyond a limit now: what rank 0 staged is lost, and nobody is left in the dark.
 */
static void lost(void) {
  MPI_Request request;
  MPI_Status status;
  struct rlimit before, small;
  int bytes = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  signal(SIGXFSZ, SIG_IGN);
  CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
  small = before;
  small.rlim_cur = (rlim_t)slots * (rlim_t)ranks * n;
  CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
  if (rank == 0) {
    CHECK(MPI_File_iwrite_at(fh, mine(slots), data, n, MPI_BYTE, &request) == MPI_SUCCESS);
    CHECK(MPI_Wait(&request, &status) == MPI_SUCCESS);
    CHECK(MPI_Get_elements(&status, MPI_BYTE, &bytes) == MPI_SUCCESS && bytes == n);
    CHECK(class_of(MPI_File_read_at(fh, 0, got, n, MPI_BYTE, MPI_STATUS_IGNORE)) == MPI_ERR_IO);
    CHECK(MPI_File_read_at(fh, 0, got, n, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  }
  CHECK(class_of(MPI_File_sync(fh)) == MPI_ERR_IO);
  /* A split write that is lost says so where it ends, to all, with its count. */
  CHECK(MPI_File_write_at_all_begin(fh, mine(slots), data, n, MPI_BYTE) == MPI_SUCCESS);
  CHECK(class_of(MPI_File_write_at_all_end(fh, data, &status)) == MPI_ERR_IO);
  CHECK(MPI_Get_elements(&status, MPI_BYTE, &bytes) == MPI_SUCCESS && bytes == 0);
  CHECK(class_of(MPI_File_close(&fh)) == MPI_ERR_IO);
  CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
}

int main(int argc, char** argv) {
  start_job(argc, argv);
  fh = open_as(MPI_MODE_CREATE | MPI_MODE_RDWR);
  independent();
  collective();
  split();
  views();
  sizes();
  lost();
  tell("written", written);
  MPI_Finalize();
  return 0;
}
