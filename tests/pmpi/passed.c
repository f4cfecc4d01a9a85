/* Writes that Penstock passes on to the library, counted, among writes of the other forms that it
 * takes; and reads between them, which see all of them. `passed FILE`, any number of ranks. */
#include <string.h>

#include "pieces.h"

enum { n = 256 };

static char data[n], got[n];
static long long written, passed;
static MPI_File fh;

static MPI_Offset mine(int slot) { return (MPI_Offset)(slot * ranks + rank) * n; }

static void check_read(int slot, int value) {
  memset(got, 0, n);
  CHECK(MPI_File_read_at(fh, mine(slot), got, n, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  for (int i = 0; i < n; ++i) CHECK(got[i] == value);
}

static void next(int value) {
  memset(data, value, n);
  written += n;
}

/* Only what the library has to do itself. */
static void next_passed(int value) {
  next(value);
  passed += n;
}

static void nonblocking(void) {
  MPI_Request request;
  next(1);
  CHECK(MPI_File_iwrite_at(fh, mine(0), data, n, MPI_BYTE, &request) == MPI_SUCCESS);
  CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  check_read(0, 1);
  next(2);
  CHECK(MPI_File_seek(fh, mine(1), MPI_SEEK_SET) == MPI_SUCCESS);
  CHECK(MPI_File_iwrite(fh, data, n, MPI_BYTE, &request) == MPI_SUCCESS);
  CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  check_read(1, 2);
}

static void split(void) {
  MPI_Status status;
  int bytes = 0;
  next(3);
  CHECK(MPI_File_write_at_all_begin(fh, mine(2), data, n, MPI_BYTE) == MPI_SUCCESS);
  CHECK(MPI_File_write_at_all_end(fh, data, &status) == MPI_SUCCESS);
  MPI_Get_elements(&status, MPI_BYTE, &bytes);
  CHECK(bytes == n);
  check_read(2, 3);
}

static void atomic(void) {
  int flag = 0;
  CHECK(MPI_File_set_atomicity(fh, 1) == MPI_SUCCESS);
  CHECK(MPI_File_get_atomicity(fh, &flag) == MPI_SUCCESS && flag == 1);
  next_passed(4);
  CHECK(MPI_File_write_at(fh, mine(3), data, n, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  check_read(3, 4);
  CHECK(MPI_File_set_atomicity(fh, 0) == MPI_SUCCESS);
}

/* Of the view of rank 0's own handle, written at its shared pointer, and of the others' handle,
 * which Penstock writes. */
static void write_pieces(MPI_File file, const char* bytes, int at_shared) {
  for (int turn = 0; turn < turns; ++turn) {
    if (at_shared)
      CHECK(MPI_File_write_shared(file, bytes, turn_bytes, MPI_BYTE, MPI_STATUS_IGNORE) ==
            MPI_SUCCESS);
    else
      CHECK(MPI_File_write_at(file, (MPI_Offset)turn * turn_bytes, bytes, turn_bytes, MPI_BYTE,
                              MPI_STATUS_IGNORE) == MPI_SUCCESS);
  }
  written += turns * turn_bytes;
  if (at_shared) passed += turns * turn_bytes;
}

/* What the library fills in and writes back must not be what another rank has written meanwhile. */
static void beside_others(void) {
  static char bytes[turn_bytes];
  MPI_File own = MPI_FILE_NULL;
  if (rank == 0)
    CHECK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR, MPI_INFO_NULL, &own) == MPI_SUCCESS);
  CHECK(see_own_pieces(fh, "native"));
  if (rank == 0) CHECK(see_own_pieces(own, "native"));
  for (int round = 0; round < 10; ++round) {
    memset(bytes, 10 * round + rank, turn_bytes);
    if (rank == 0) CHECK(MPI_File_seek_shared(own, 0, MPI_SEEK_SET) == MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    write_pieces(rank == 0 ? own : fh, bytes, rank == 0);
    CHECK(MPI_File_sync(fh) == MPI_SUCCESS);
    if (rank == 0) CHECK(are_pieces(10 * round));
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (rank == 0) CHECK(MPI_File_close(&own) == MPI_SUCCESS);
}

/* Ranks that open one file with different access modes are wrong by the standard, which Open MPI
 * does not mind: nothing of it is Penstock's, and no rank waits for one that does not come. */
static void opened_differently(void) {
  MPI_File file;
  if (ranks == 1) return;
  MPI_Barrier(MPI_COMM_WORLD);
  if (MPI_File_open(MPI_COMM_WORLD, path, rank == 0 ? MPI_MODE_RDWR : MPI_MODE_RDONLY,
                    MPI_INFO_NULL, &file) != MPI_SUCCESS)
    return;
  CHECK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL) == MPI_SUCCESS);
  if (rank == 0) {
    next_passed(6);
    CHECK(MPI_File_write_at(file, 0, data, n, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  memset(got, 0, n);
  CHECK(MPI_File_read_at_all(file, 0, got, n, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  for (int i = 0; i < n; ++i) CHECK(got[i] == 6);
  CHECK(MPI_File_close(&file) == MPI_SUCCESS);
}

/* What is wrong on rank 1 alone all are told: at the end, of a split write. */
static void told_to_all(void) {
  MPI_Datatype bad;
  if (ranks == 1) return;
  MPI_Type_contiguous(1, MPI_BYTE, &bad); /* not committed */
  const MPI_Datatype type = rank == 1 ? bad : MPI_BYTE;
  (void)MPI_File_set_view(fh, 0, MPI_BYTE, MPI_BYTE, "external32", MPI_INFO_NULL);
  CHECK(MPI_File_write_at_all(fh, 0, data, rank == 1, type, MPI_STATUS_IGNORE) != MPI_SUCCESS);
  CHECK(MPI_File_write_at_all_begin(fh, 0, data, rank == 1, type) == MPI_SUCCESS);
  CHECK(MPI_File_write_at_all_end(fh, data, MPI_STATUS_IGNORE) != MPI_SUCCESS);
  CHECK(MPI_File_set_view(fh, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL) == MPI_SUCCESS);
  MPI_Type_free(&bad);
}

/* A view that names each byte twice may be read, where the library takes it. Nobody tells how much
 * a read that is not waited for here moves, so the library is asked where the pointer is. */
static void each_twice(void) {
  MPI_Datatype twice;
  MPI_Request request;
  MPI_Offset at = -1;
  fh = open_as(MPI_MODE_RDONLY);
  MPI_Type_vector(2, n, 0, MPI_BYTE, &twice);
  MPI_Type_commit(&twice);
  if (MPI_File_set_view(fh, 0, MPI_BYTE, twice, "native", MPI_INFO_NULL) == MPI_SUCCESS) {
    char both[2 * n] = {0};
    CHECK(MPI_File_iread(fh, both, 2 * n, MPI_BYTE, &request) == MPI_SUCCESS);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(memcmp(both, both + n, n) == 0 && both[0] != 0);
    CHECK(MPI_File_read_all_begin(fh, both, 2 * n, MPI_BYTE) == MPI_SUCCESS);
    CHECK(MPI_File_read_all_end(fh, both, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(memcmp(both, both + n, n) == 0);
    /* Where it is the library says, in its own way. */
    CHECK(MPI_File_get_position(fh, &at) == MPI_SUCCESS);
  }
  MPI_Type_free(&twice);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
}

int main(int argc, char** argv) {
  start_job(argc, argv);
  fh = open_as(MPI_MODE_CREATE | MPI_MODE_RDWR);
  nonblocking();
  split();
  atomic();
  beside_others();
  told_to_all();
  CHECK(MPI_File_sync(fh) == MPI_SUCCESS);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  each_twice();
  opened_differently();
  return end_job(written, passed);
}
