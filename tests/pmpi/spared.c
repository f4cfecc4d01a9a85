/* Views that the library's own file is not told of (docs/decisions/0073): a program of several
 * ranks whose views differ, and no call that a rank could take to the library alone. What the
 * library knows is asked of it past Penstock. `spared FILE`. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#include "job.h"

enum { block = 40, blocks = 50, n = block * blocks };

static long long written, got;
static char data[n], memory[n];

/* A program with a read that the library makes beside it is never spared one: unspared.c. */
#ifdef COMES_ALONE
static int (*volatile comes_alone)(MPI_File, void*, int, MPI_Datatype, MPI_Request*);
static int is_spared(void) {
  comes_alone = &MPI_File_iread_all;
  return 0;
}
#else
static int is_spared(void) { return ranks > 1 && getenv("PENSTOCK_ALL_RANKS") != NULL; }
#endif

static char value_at(long long place) { return (char)(1 + place % 101); }

/* Blocks of the ranks take turns, behind the first byte. */
static long long place(int i) {
  return 1 + ((long long)(i / block) * ranks + rank) * block + i % block;
}

static MPI_Offset displacement_of_own(void) { return 1 + (MPI_Offset)rank * block; }

static void set_own_view(MPI_File fh, MPI_Info info) {
  MPI_Datatype one, tile;
  MPI_Type_contiguous(block, MPI_BYTE, &one);
  MPI_Type_create_resized(one, 0, (MPI_Aint)block * ranks, &tile);
  MPI_Type_commit(&tile);
  CHECK(MPI_File_set_view(fh, displacement_of_own(), MPI_BYTE, tile, "native", info) ==
        MPI_SUCCESS);
  MPI_Type_free(&one);
  MPI_Type_free(&tile);
}

static void set_bytes(MPI_File fh, MPI_Info info) {
  CHECK(MPI_File_set_view(fh, 0, MPI_BYTE, MPI_BYTE, "native", info) == MPI_SUCCESS);
}

static void release(MPI_Datatype type) {
  int integers, addresses, types, combiner;
  MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  if (combiner != MPI_COMBINER_NAMED) MPI_Type_free(&type);
}

typedef int GetView(MPI_File, MPI_Offset*, MPI_Datatype*, MPI_Datatype*, char*);
static GetView* library_get_view;

/* Where a function is that is nobody's but the library's. */
static void find_library(void) {
  Dl_info where;
  CHECK(dladdr(dlsym(RTLD_DEFAULT, "MPI_Get_library_version"), &where) != 0);
  void* library = dlopen(where.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  CHECK(library != NULL);
  library_get_view = (GetView*)dlsym(library, "PMPI_File_get_view");
  CHECK(library_get_view != NULL);
}

static void expect_view(MPI_File fh, MPI_Offset program, MPI_Offset library) {
  MPI_Offset displacement = -1;
  MPI_Datatype etype, filetype;
  char datarep[MPI_MAX_DATAREP_STRING] = "";
  CHECK(MPI_File_get_view(fh, &displacement, &etype, &filetype, datarep) == MPI_SUCCESS);
  CHECK(displacement == program && strcmp(datarep, "native") == 0);
  release(etype);
  release(filetype);
  CHECK(library_get_view(fh, &displacement, &etype, &filetype, datarep) == MPI_SUCCESS);

  CHECK(displacement == library);
  release(etype);
  release(filetype);
}

/* The program's own view, of which the library knows nothing where it is spared. */
static void expect_own(MPI_File fh, int spared) {
  expect_view(fh, displacement_of_own(), spared ? 0 : displacement_of_own());
}

static void expect_position(MPI_File fh, MPI_Offset expected) {
  MPI_Offset at = -1;
  CHECK(MPI_File_get_position(fh, &at) == MPI_SUCCESS && at == expected);
}

static void expect_own_bytes(int begin, int count) {
  for (int i = 0; i < count; ++i) CHECK(memory[i] == value_at(place(begin + i)));
  memset(memory, 0, sizeof memory);
}

static void write_own(MPI_File fh) {
  for (int i = 0; i < n; ++i) data[i] = value_at(place(i));
  CHECK(MPI_File_write_all(fh, data, n / 2, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  expect_position(fh, n / 2);
  CHECK(MPI_File_write(fh, data + n / 2, n - n / 2, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  expect_position(fh, n);
  written += n;
}

static void read_own(MPI_File fh, int by_engine) {
  MPI_Status status;
  CHECK(MPI_File_seek(fh, 70, MPI_SEEK_SET) == MPI_SUCCESS);
  CHECK(MPI_File_read(fh, memory, 300, MPI_BYTE, &status) == MPI_SUCCESS);
  CHECK(bytes_of(&status) == 300);
  expect_own_bytes(70, 300);
  expect_position(fh, 370);
  if (by_engine) got += 300;
}

/* HDF5's way: a view for each write, and back. The library's own pointer starts anew each time. */
static void by_turns(MPI_File fh) {
  char some[5];
  for (int round = 0; round < 3; ++round) {
    set_own_view(fh, MPI_INFO_NULL);
    expect_own(fh, is_spared());
    write_own(fh);
    read_own(fh, is_spared());
    set_bytes(fh, MPI_INFO_NULL);
    expect_view(fh, 0, 0);
    expect_position(fh, 0);
    CHECK(MPI_File_read(fh, some, 5, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    expect_position(fh, 5);
    set_bytes(fh, MPI_INFO_NULL);
    CHECK(MPI_File_write(fh, "0", 1, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(MPI_File_read(fh, some, 0, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    expect_position(fh, 1);
    written += 1;
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

/* All ranks' views alike: one of them could come to the shared pointer alone. */
static void all_alike(MPI_File fh) {
  set_own_view(fh, MPI_INFO_NULL);
  CHECK(MPI_File_set_view(fh, 4, MPI_INT, MPI_INT, "native", MPI_INFO_NULL) == MPI_SUCCESS);
  expect_view(fh, 4, 4);
  set_own_view(fh, MPI_INFO_NULL); /* now the library has something else */
  expect_own(fh, 0);
  read_own(fh, 0);
  set_bytes(fh, MPI_INFO_NULL);
  expect_view(fh, 0, 0);
  set_own_view(fh, MPI_INFO_NULL);
  expect_own(fh, is_spared());
}

/* Hints that the library has not heard of yet reach it. */
static void hints(MPI_File fh) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "cb_buffer_size", "65536");
  set_bytes(fh, MPI_INFO_NULL);
  set_own_view(fh, info);
  expect_own(fh, 0);
  set_bytes(fh, info);
  set_own_view(fh, info);
  expect_own(fh, is_spared());
  MPI_Info_set(info, "cb_buffer_size", "131072");
  set_own_view(fh, info);
  expect_own(fh, 0);
  MPI_Info_free(&info);
}

/* Atomic mode is the library's, which needs the view for it. */
static void given(MPI_File fh) {
  set_bytes(fh, MPI_INFO_NULL);
  set_own_view(fh, MPI_INFO_NULL);
  CHECK(MPI_File_seek(fh, 500, MPI_SEEK_SET) == MPI_SUCCESS);
  CHECK(MPI_File_set_atomicity(fh, 1) == MPI_SUCCESS);
  expect_own(fh, 0);
  expect_position(fh, 500);
  read_own(fh, 0);
  CHECK(MPI_File_set_atomicity(fh, 0) == MPI_SUCCESS);
  set_own_view(fh, MPI_INFO_NULL);
  expect_own(fh, 0);
  write_own(fh);
}

/* One rank's view holds no byte, so the library has a say. */
static void one_is_empty(MPI_File fh) {
  MPI_Datatype none;
  MPI_Type_contiguous(0, MPI_BYTE, &none);
  MPI_Type_commit(&none);
  set_bytes(fh, MPI_INFO_NULL);
  set_own_view(fh, MPI_INFO_NULL);
  if (rank == 0)
    CHECK(MPI_File_set_view(fh, 8, MPI_BYTE, none, "native", MPI_INFO_NULL) == MPI_SUCCESS);
  else
    set_own_view(fh, MPI_INFO_NULL);
  if (rank == 0)
    expect_view(fh, 8, 8);
  else
    expect_own(fh, 0);
  MPI_Type_free(&none);
}

int main(int argc, char** argv) {
  start_job(argc, argv);
  find_library();
  MPI_File fh = open_fresh();
  by_turns(fh);
  all_alike(fh);
  hints(fh);
  given(fh);
  one_is_empty(fh);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  tell("written", written);
  tell("read", got);
  MPI_Finalize();
  return 0;
}
