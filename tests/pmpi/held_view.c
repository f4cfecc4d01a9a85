/* A view of so many blocks that the library's own file is given it only when a call needs that
 * (docs/decisions/0031): every call that can follow. The bytes are known from the file's own
 * offsets. `held_view FILE`. */
#include <string.h>

#include "job.h"

enum {
  n = 70000
}; /* blocks of an int, of each rank: in an order that differs by round, and holes */

static int part;
static long long written, got;
static int data[n], memory[n];

static int is_under_penstock(void) { return getenv("PENSTOCK_ALL_RANKS") != NULL; }

/* The file's int that is int i of this rank's stream. */
static int place(int i) {
  const unsigned turn = (unsigned)i * 2654435761u >> 16;
  return i * (ranks + 1) + (int)((unsigned)rank + turn) % ranks;
}

/* Not committed. */
static MPI_Datatype filetype(int count) {
  MPI_Datatype blocks, tile;
  int* places = malloc(sizeof(int) * n);
  for (int i = 0; i < n; ++i) places[i] = place(i);
  MPI_Type_create_indexed_block(count, 1, places, MPI_INT, &blocks);
  MPI_Type_create_resized(blocks, 0, (MPI_Aint)sizeof(int) * n * (ranks + 1), &tile);
  MPI_Type_free(&blocks);
  free(places);
  return tile;
}

static const MPI_Offset begin = 12; /* the view's displacement */

/* The program's own type is gone when it returns. */
static void set_view(MPI_File fh) {
  MPI_Datatype tile = filetype(n);
  MPI_Type_commit(&tile);
  CHECK(MPI_File_set_view(fh, begin, MPI_INT, tile, "native", MPI_INFO_NULL) == MPI_SUCCESS);
  MPI_Type_free(&tile);
}

static void expect_position(MPI_File fh, MPI_Offset expected) {
  MPI_Offset at = -1;
  CHECK(MPI_File_get_position(fh, &at) == MPI_SUCCESS && at == expected);
}

static void expect(int first, int count, MPI_Status* status) {
  int ints = -1;
  MPI_Get_count(status, MPI_INT, &ints);
  CHECK(ints == count);
  for (int i = 0; i < count; ++i) CHECK(memory[i] == place(first + i));
  memset(memory, 0, sizeof memory);
}

static void what_the_view_is(MPI_File fh) {
  MPI_Offset displacement = -1, offset = -1;
  MPI_Datatype etype, tile;
  char datarep[MPI_MAX_DATAREP_STRING] = "";
  int size;
  MPI_Aint lb, extent;
  CHECK(MPI_File_get_view(fh, &displacement, &etype, &tile, datarep) == MPI_SUCCESS);
  CHECK(displacement == begin && etype == MPI_INT && strcmp(datarep, "native") == 0);
  MPI_Type_size(tile, &size);
  MPI_Type_get_extent(tile, &lb, &extent);
  CHECK(size == n * (int)sizeof(int) && lb == 0);
  CHECK(extent == (MPI_Aint)sizeof(int) * n * (ranks + 1));
  MPI_Type_free(&tile);
  for (int i = 0; i < n; i += 777) {
    CHECK(MPI_File_get_byte_offset(fh, i, &offset) == MPI_SUCCESS);
    CHECK(offset == begin + (MPI_Offset)sizeof(int) * place(i));
  }
}

/* A third of the stream each way. */
static void writes(MPI_File fh) {
  MPI_Status status;
  MPI_Request request;
  for (int i = 0; i < n; ++i) data[i] = place(i);
  CHECK(MPI_File_write_all(fh, data, part, MPI_INT, &status) == MPI_SUCCESS);
  expect_position(fh, part);
  CHECK(MPI_File_write(fh, data + part, part, MPI_INT, &status) == MPI_SUCCESS);
  expect_position(fh, 2 * part);
  CHECK(MPI_File_iwrite_at(fh, 2 * part, data + 2 * part, n - 2 * part, MPI_INT, &request) ==
        MPI_SUCCESS);
  MPI_Wait(&request, &status);
  expect_position(fh, 2 * part);
  written += n * (long long)sizeof(int);
}

static void reads_alone(MPI_File fh) {
  MPI_Status status;
  MPI_Request request;
  CHECK(MPI_File_seek(fh, 100, MPI_SEEK_SET) == MPI_SUCCESS);
  CHECK(MPI_File_read(fh, memory, 1000, MPI_INT, &status) == MPI_SUCCESS);
  expect(100, 1000, &status);
  CHECK(MPI_File_iread(fh, memory, 50, MPI_INT, &request) == MPI_SUCCESS);
  expect_position(fh, 1150);
  MPI_Wait(&request, &status);
  expect(1100, 50, &status);
  CHECK(MPI_File_read_at(fh, 7, memory, n - 7, MPI_INT, &status) == MPI_SUCCESS);
  expect(7, n - 7, &status);
  CHECK(MPI_File_iread_at(fh, 20, memory, 1, MPI_INT, &request) == MPI_SUCCESS);
  MPI_Wait(&request, &status);
  expect(20, 1, &status);
  expect_position(fh, 1150);
  got += (1000 + 50 + n - 7 + 1) * (long long)sizeof(int);
  CHECK(class_of(MPI_File_read_at(fh, -1, memory, 1, MPI_INT, &status)) != MPI_SUCCESS);
}

/* Collective and non-blocking: no rank may wait for another at the start. */
static void reads_that_wait_for_nobody(MPI_File fh) {
  MPI_Status status;
  MPI_Request request;
  int token = 0;
  if (rank > 0) MPI_Recv(&token, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK(MPI_File_iread_all(fh, memory, 30, MPI_INT, &request) == MPI_SUCCESS);
  if (rank + 1 < ranks) MPI_Send(&token, 1, MPI_INT, rank + 1, 0, MPI_COMM_WORLD);
  MPI_Wait(&request, &status);
  expect(1150, 30, &status);
  CHECK(MPI_File_iread_at_all(fh, 3, memory, 5, MPI_INT, &request) == MPI_SUCCESS);
  MPI_Wait(&request, &status);
  expect(3, 5, &status);
  expect_position(fh, 1180);
  got += (30 + 5) * (long long)sizeof(int);
}

static void seeks(MPI_File fh) {
  MPI_Offset none;
  CHECK(class_of(MPI_File_get_byte_offset(fh, -1, &none)) == MPI_ERR_ARG);
  CHECK(MPI_File_seek(fh, -80, MPI_SEEK_CUR) == MPI_SUCCESS);
  expect_position(fh, 1100);
  CHECK(MPI_File_seek(fh, -1101, MPI_SEEK_CUR) != MPI_SUCCESS);
  expect_position(fh, 1100);
  CHECK(MPI_File_seek(fh, 1, 12345) != MPI_SUCCESS); /* no whence */
  expect_position(fh, 1100);
  MPI_Barrier(MPI_COMM_WORLD); /* all have written */
  CHECK(MPI_File_seek(fh, -10, MPI_SEEK_END) == MPI_SUCCESS);
  expect_position(fh, n - 10);
}

/* The library has the view from here on, and the pointer with it. */
static void given_to_the_library(MPI_File fh) {
  MPI_Status status;
  CHECK(MPI_File_seek(fh, 500, MPI_SEEK_SET) == MPI_SUCCESS);
  CHECK(MPI_File_set_atomicity(fh, 1) == MPI_SUCCESS);
  expect_position(fh, 500);
  CHECK(MPI_File_read(fh, memory, 9, MPI_INT, &status) == MPI_SUCCESS);
  expect(500, 9, &status);
  what_the_view_is(fh);
  CHECK(MPI_File_set_atomicity(fh, 0) == MPI_SUCCESS);
}

/* A call that fails leaves the view that was. */
static void refused_view(MPI_File fh) {
  MPI_Status status;
  set_view(fh);
  CHECK(MPI_File_set_view(fh, 0, MPI_INT, MPI_DATATYPE_NULL, "native", MPI_INFO_NULL) !=
        MPI_SUCCESS);
  CHECK(MPI_File_read_at(fh, 600, memory, 9, MPI_INT, &status) == MPI_SUCCESS);
  expect(600, 9, &status);
  what_the_view_is(fh);
}

static int class_of_view(MPI_File fh, MPI_Datatype etype, int count, int commit) {
  MPI_Datatype tile = filetype(count);
  if (commit) MPI_Type_commit(&tile);
  const int rc = MPI_File_set_view(fh, begin, etype, tile, "native", MPI_INFO_NULL);
  MPI_Type_free(&tile);
  return class_of(rc);
}

/* One rank's view is small: it is held back like the others'. */
static void small_beside_large(MPI_File fh) {
  MPI_Status status;
  const int count = rank == 0 ? 10 : n;
  CHECK(class_of_view(fh, MPI_INT, count, 1) == MPI_SUCCESS);
  CHECK(MPI_File_write_all(fh, data, count, MPI_INT, &status) == MPI_SUCCESS);
  written += count * (long long)sizeof(int);
  CHECK(MPI_File_set_atomicity(fh, 1) == MPI_SUCCESS);
  expect_position(fh, count);
  CHECK(MPI_File_read_at(fh, 3, memory, 7, MPI_INT, &status) == MPI_SUCCESS);
  expect(3, 7, &status);
  CHECK(MPI_File_set_atomicity(fh, 0) == MPI_SUCCESS);
}

/* What is wrong with a large view is told as it is of a small one, which the library has at once.
 */
static void wrong_views(MPI_File fh) {
  MPI_Datatype three;
  MPI_Type_contiguous(3, MPI_INT, &three);
  CHECK(class_of_view(fh, MPI_INT, n, 0) == class_of_view(fh, MPI_INT, 10, 0));
  CHECK(class_of_view(fh, three, n, 1) == class_of_view(fh, three, 10, 1));
  MPI_Type_commit(&three);
  CHECK(class_of_view(fh, three, n, 1) == class_of_view(fh, three, 10, 1));
  MPI_Type_free(&three);
}

/* The shared pointer is one rank's alone, or nobody's where views differ. */
static void shared_pointer(MPI_File fh) {
  MPI_Status status;
  set_view(fh);
  const int rc = MPI_File_read_shared(fh, memory, 4, MPI_INT, &status);
  if (ranks == 1) {
    CHECK(rc == MPI_SUCCESS);
    expect(0, 4, &status);
  } else if (is_under_penstock()) {
    CHECK(class_of(rc) == MPI_ERR_UNSUPPORTED_OPERATION);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void another_view(MPI_File fh) {
  MPI_Status status;
  set_view(fh);
  CHECK(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL) == MPI_SUCCESS);
  expect_position(fh, 0);
  CHECK(MPI_File_read_at_all(fh, begin / (MPI_Offset)sizeof(int) + place(40), memory, 1, MPI_INT,
                             &status) == MPI_SUCCESS);
  expect(40, 1, &status);
  got += (long long)sizeof(int);
}

static void of_a_file_opened_for_reading(void) {
  MPI_Status status;
  MPI_File fh = open_as(MPI_MODE_RDONLY);
  set_view(fh);
  what_the_view_is(fh);
  CHECK(MPI_File_read_all(fh, memory, part, MPI_INT, &status) == MPI_SUCCESS);
  expect(0, part, &status);
  CHECK(MPI_File_read(fh, memory, n - part, MPI_INT, &status) == MPI_SUCCESS);
  expect(part, n - part, &status);
  got += n * (long long)sizeof(int);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
}

/* A call that the library refuses moves no pointer. */
static void read_where_only_writing_is_allowed(void) {
  MPI_Status status;
  MPI_File fh = open_as(MPI_MODE_WRONLY);
  set_view(fh);
  CHECK(MPI_File_write(fh, data, 100, MPI_INT, &status) == MPI_SUCCESS);
  CHECK(MPI_File_read(fh, memory, 1, MPI_INT, &status) != MPI_SUCCESS);
  expect_position(fh, 100);
  CHECK(MPI_File_write(fh, data + 100, 100, MPI_INT, &status) == MPI_SUCCESS);
  expect_position(fh, 200);
  written += 200 * (long long)sizeof(int);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  start_job(argc, argv);
  part = n / 3;
  MPI_File fh = open_as(MPI_MODE_CREATE | MPI_MODE_RDWR);
  set_view(fh);
  what_the_view_is(fh);
  writes(fh);
  reads_alone(fh);
  reads_that_wait_for_nobody(fh);
  seeks(fh);
  given_to_the_library(fh);
  shared_pointer(fh);
  another_view(fh);
  small_beside_large(fh);
  refused_view(fh);
  wrong_views(fh);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  read_where_only_writing_is_allowed();
  of_a_file_opened_for_reading();
  tell("written", written);
  tell("read", got);
  MPI_Finalize();
  return 0;
}
