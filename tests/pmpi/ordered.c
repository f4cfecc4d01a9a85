/* Writes in rank order at the shared file pointer, which the library keeps: `ordered FILE`, any
 * number of ranks. Each round all write so and so many integers, some of them none, through one
 * view with gaps, which belong to the last rank's own handle. */
#include <string.h>
#include <time.h>

#include "job.h"

enum { before = 3, block = 5, stride = 16, most = 40, rounds = 12, file_ints = 1 << 16 };

static int expected[file_ints], got[file_ints];
static long long written, passed;
static MPI_File fh, own;
static MPI_Offset at; /* of the shared pointer, in integers of the view */

static int count_of(int round, int of_rank) { return (13 * of_rank + 7 * round) % most; }
static int value_of(int round, int of_rank, int i) {
  return 1000000 * (round + 1) + 1000 * of_rank + i;
}
static long place_of(MPI_Offset i) { return (long)(before + i / block * stride + i % block); }

static void see_blocks(MPI_File file, int ints_before) {
  MPI_Datatype piece, view;
  MPI_Type_contiguous(block, MPI_INT, &piece);
  MPI_Type_create_resized(piece, 0, stride * (MPI_Aint)sizeof(int), &view);
  MPI_Type_commit(&view);
  CHECK(MPI_File_set_view(file, ints_before * (MPI_Offset)sizeof(int), MPI_INT, view, "native",
                          MPI_INFO_NULL) == MPI_SUCCESS);
  MPI_Type_free(&view);
  MPI_Type_free(&piece);
}

/* What the round leaves in the file, and where the pointer is then. */
static void expect_round(int round) {
  for (int r = 0; r < ranks; ++r)
    for (int i = 0; i < count_of(round, r); ++i) expected[place_of(at++)] = value_of(round, r, i);
}

static int write_as(int round, const int* ints, int n, MPI_Status* status) {
  if (round % 3 == 1) {
    const int begun = MPI_File_write_ordered_begin(fh, ints, n, MPI_INT);
    CHECK(begun == MPI_SUCCESS);
    return MPI_File_write_ordered_end(fh, ints, status);
  }
#if MPI_VERSION >= 4
  if (round % 3 == 2) return MPI_File_write_ordered_c(fh, ints, n, MPI_INT, status);
#endif
  return MPI_File_write_ordered(fh, ints, n, MPI_INT, status);
}

static void write_round(int round) {
  int ints[most];
  MPI_Status status;
  MPI_Offset shared = -1, individual = -1;
  const int n = count_of(round, rank);
  for (int i = 0; i < n; ++i) ints[i] = value_of(round, rank, i);
  CHECK(write_as(round, ints, n, &status) == MPI_SUCCESS);
  CHECK(bytes_of(&status) == n * (int)sizeof(int));
  written += n * (long long)sizeof(int);
  expect_round(round);
  CHECK(MPI_File_get_position(fh, &individual) == MPI_SUCCESS && individual == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(MPI_File_get_position_shared(fh, &shared) == MPI_SUCCESS && shared == at);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* The gaps are another handle's, which writes them meanwhile. */
static void write_gaps(int round) {
  int gap[block];
  for (int i = 0; i < block; ++i) gap[i] = -round - 1;
  for (int i = 0; i < 8; ++i) {
    CHECK(MPI_File_write_at(own, (8L * round + i) * block, gap, block, MPI_INT,
                            MPI_STATUS_IGNORE) == MPI_SUCCESS);
    written += (long long)sizeof gap;
    const long first = before + block + (8L * round + i) * stride;
    memcpy(expected + first, gap, sizeof gap);
  }
}

/* One rank moves the pointer alone. */
static void write_one_shared(int value) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == ranks - 1) {
    CHECK(MPI_File_write_shared(fh, &value, 1, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    written += (long long)sizeof value;
    passed += (long long)sizeof value;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  expected[place_of(at++)] = value;
}

/* One rank moves the pointer alone while the others wait for it in a write of all. */
static void write_one_late(int value) {
  const int mine = value + 1 + rank;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == ranks - 1) {
    nanosleep(&(struct timespec){0, 50000000}, NULL);
    CHECK(MPI_File_write_shared(fh, &value, 1, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    written += (long long)sizeof value;
    passed += (long long)sizeof value;
  }
  CHECK(MPI_File_write_ordered(fh, &mine, 1, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  written += (long long)sizeof mine;
  for (int r = -1; r < ranks; ++r) expected[place_of(at++)] = value + 1 + r;
}

static void seek_to(MPI_Offset to) {
  CHECK(MPI_File_seek_shared(fh, to, MPI_SEEK_SET) == MPI_SUCCESS);
  at = to;
}

/* The ranks' own pieces of what was written last, by the library. */
static void read_in_order(int round, MPI_Offset from) {
  int ints[most];
  MPI_Status status;
  const int n = count_of(round, rank);
  const MPI_Offset here = at;
  seek_to(from);
  CHECK(MPI_File_read_ordered(fh, ints, n, MPI_INT, &status) == MPI_SUCCESS);
  CHECK(bytes_of(&status) == n * (int)sizeof(int));
  for (int i = 0; i < n; ++i) CHECK(ints[i] == value_of(round, rank, i));
  seek_to(here);
}

/* What one rank is wrong about all are told, and nobody waits. */
static void told_to_all(void) {
  MPI_Datatype bad;
  const int value = 1;
  if (ranks == 1) return;
  MPI_Type_contiguous(1, MPI_INT, &bad); /* not committed */
  const MPI_Datatype type = rank == 1 ? bad : MPI_INT;
  CHECK(MPI_File_write_ordered(fh, &value, rank == 1, type, MPI_STATUS_IGNORE) != MPI_SUCCESS);
  CHECK(MPI_File_write_ordered_begin(fh, &value, rank == 1, type) == MPI_SUCCESS);
  CHECK(MPI_File_write_ordered_end(fh, &value, MPI_STATUS_IGNORE) != MPI_SUCCESS);
  MPI_Type_free(&bad);
}

static void check_file(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank != ranks - 1) return; /* which knows the gaps */
  const long n = read_back(path, 0, got, (long)sizeof got) / (long)sizeof(int);
  CHECK(n > place_of(at - 1));
  CHECK(memcmp(got, expected, (size_t)n * sizeof(int)) == 0);
}

/* The world's ranks the other way round, in a communicator that Open MPI gives the attributes of
 * the one that a file was opened on. */
static void write_reversed(void) {
  MPI_Group world, reversed;
  MPI_Comm comm;
  MPI_File file;
  int last_to_first[] = {ranks - 1, 0, -1}, own_rank;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_range_incl(world, 1, &last_to_first, &reversed);
  CHECK(MPI_Comm_create_group(MPI_COMM_WORLD, reversed, 0, &comm) == MPI_SUCCESS);
  MPI_Comm_rank(comm, &own_rank);
  CHECK(own_rank == ranks - 1 - rank);
  CHECK(MPI_File_open(comm, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file) == MPI_SUCCESS);
  CHECK(MPI_File_write_ordered(file, &own_rank, (int)sizeof own_rank, MPI_BYTE,
                               MPI_STATUS_IGNORE) == MPI_SUCCESS);
  written += (long long)sizeof own_rank;
  CHECK(MPI_File_close(&file) == MPI_SUCCESS);
  read_back(path, 0, got, ranks * (long)sizeof(int));
  for (int r = 0; r < ranks; ++r) CHECK(got[r] == r);
  MPI_Comm_free(&comm);
  MPI_Group_free(&reversed);
  MPI_Group_free(&world);
}

int main(int argc, char** argv) {
  start_job(argc, argv);
  fh = open_fresh();
  if (rank == ranks - 1) {
    CHECK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR, MPI_INFO_NULL, &own) == MPI_SUCCESS);
    see_blocks(own, before + block);
  }
  see_blocks(fh, before);
  seek_to(2);
  for (int round = 0; round < rounds; ++round) {
    const MPI_Offset from = at;
    if (round == rounds - 2) CHECK(MPI_File_set_atomicity(fh, 1) == MPI_SUCCESS);
    if (rank == ranks - 1) write_gaps(round);
    write_round(round);
    if (round % 4 == 3) read_in_order(round, from);
    if (round % 5 == 4) write_one_shared(round);
    if (round % 5 == 2) write_one_late(-1000 * round);
  }
  told_to_all();
  CHECK(MPI_File_sync(fh) == MPI_SUCCESS);
  if (rank == ranks - 1) CHECK(MPI_File_close(&own) == MPI_SUCCESS);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  check_file();
  write_reversed();
  return end_job(written, passed);
}
