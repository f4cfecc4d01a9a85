/* Ranks start as many more of the same program, which do not have Penstock, and all write one file
 * together: `spawned FILE`, any number of ranks. Prints the bytes that those wrote which were there
 * first, all of them by the MPI library. */
#include "job.h"

enum { kBytes = 1000 };

static MPI_Comm with_children(char** argv) {
  MPI_Comm children, all;
  CHECK(MPI_Comm_spawn(argv[0], argv + 1, ranks, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                       MPI_ERRCODES_IGNORE) == MPI_SUCCESS);
  MPI_Intercomm_merge(children, 0, &all);
  MPI_Comm_disconnect(&children);
  return all;
}

static MPI_Comm with_parents(MPI_Comm parents) {
  MPI_Comm all;
  MPI_Intercomm_merge(parents, 1, &all);
  MPI_Comm_disconnect(&parents);
  return all;
}

/* By a collective call and by an independent one. */
static void write_mine(MPI_File fh, int place, int places) {
  char data[kBytes];
  MPI_Status status;
  memset(data, 'a' + place, sizeof data);
  CHECK(MPI_File_write_at_all(fh, place * kBytes, data, kBytes, MPI_BYTE, &status) == MPI_SUCCESS);
  CHECK(bytes_of(&status) == kBytes);
  CHECK(MPI_File_write_at(fh, (places + place) * kBytes, data, kBytes, MPI_BYTE, &status) ==
        MPI_SUCCESS);
  CHECK(bytes_of(&status) == kBytes);
}

static void check_all(MPI_File fh, int places) {
  char data[kBytes];
  for (int i = 0; i < 2 * places; ++i) {
    CHECK(MPI_File_read_at(fh, i * kBytes, data, kBytes, MPI_BYTE, MPI_STATUS_IGNORE) ==
          MPI_SUCCESS);
    for (int k = 0; k < kBytes; ++k) CHECK(data[k] == 'a' + i % places);
  }
}

static void write_together(MPI_Comm all) {
  MPI_File fh;
  int place, places;
  MPI_Comm_rank(all, &place);
  MPI_Comm_size(all, &places);
  CHECK(MPI_File_open(all, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &fh) ==
        MPI_SUCCESS);
  write_mine(fh, place, places);
  CHECK(MPI_File_sync(fh) == MPI_SUCCESS);
  MPI_Barrier(all);
  check_all(fh, places);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
}

int main(int argc, char** argv) {
  MPI_Comm parents, all;
  start_job(argc, argv);
  MPI_Comm_get_parent(&parents);
  all = parents == MPI_COMM_NULL ? with_children(argv) : with_parents(parents);
  write_together(all);
  MPI_Comm_free(&all);
  if (parents == MPI_COMM_NULL) {
    tell("written", 2 * kBytes);
    tell("passed", 2 * kBytes);
  }
  MPI_Finalize();
  return 0;
}
