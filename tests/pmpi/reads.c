/* Collective reads: every form, with views and memory types, where the file ends, of a file opened
 * for reading alone, and of what was just written by each way of writing. The bytes are known from
 * the file's own offsets, so the program is its own oracle, and runs alone too. `reads FILE`. */
#include <string.h>

#include "job.h"

enum { block = 12, blocks = 500, n = block * blocks }; /* of one rank, through the view */

static long long written, got;
static char data[n], memory[2 * n + 100];

static char value_at(long long offset) { return (char)(offset * 2654435761u >> 13 | 1); }

/* The file offset of byte i of this rank's stream. */
static long long place(int i) {
  return ((long long)(i / block) * ranks + rank) * block + i % block;
}

/* Blocks of the ranks take turns. */
static void set_view(MPI_File fh) {
  MPI_Datatype one, tile;
  MPI_Type_contiguous(block, MPI_BYTE, &one);
  MPI_Type_create_resized(one, 0, (MPI_Aint)block * ranks, &tile);
  MPI_Type_commit(&tile);
  CHECK(MPI_File_set_view(fh, (MPI_Offset)rank * block, MPI_BYTE, tile, "native", MPI_INFO_NULL) ==
        MPI_SUCCESS);
  MPI_Type_free(&one);
  MPI_Type_free(&tile);
}

static void expect(const char* bytes, int begin, int count) {
  for (int i = 0; i < count; ++i) CHECK(bytes[i] == value_at(place(begin + i)));
  got += count;
}

static void clear(void) { memset(memory, 0, sizeof memory); }

static void write_everything(void) {
  MPI_File fh = open_as(MPI_MODE_CREATE | MPI_MODE_RDWR);
  MPI_Status status;
  set_view(fh);
  for (int i = 0; i < n; ++i) data[i] = value_at(place(i));
  CHECK(MPI_File_write_all(fh, data, n, MPI_BYTE, &status) == MPI_SUCCESS);
  written += n;
  /* What was written is read at once, without a sync between. */
  clear();
  CHECK(MPI_File_read_at_all(fh, 0, memory, n, MPI_BYTE, &status) == MPI_SUCCESS);
  CHECK(bytes_of(&status) == n);
  expect(memory, 0, n);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void pointers(MPI_File fh) {
  MPI_Status status;
  MPI_Offset at = -1;
  clear();
  CHECK(MPI_File_seek(fh, 100, MPI_SEEK_SET) == MPI_SUCCESS);
  CHECK(MPI_File_read_all(fh, memory, 1000, MPI_BYTE, &status) == MPI_SUCCESS);
  CHECK(bytes_of(&status) == 1000);
  expect(memory, 100, 1000);
  CHECK(MPI_File_get_position(fh, &at) == MPI_SUCCESS && at == 1100);
  CHECK(MPI_File_read_all(fh, memory, rank == 0 ? 0 : 10, MPI_BYTE, MPI_STATUS_IGNORE) ==
        MPI_SUCCESS);
  expect(memory, 1100, rank == 0 ? 0 : 10);
  CHECK(MPI_File_get_position(fh, &at) == MPI_SUCCESS && at == (rank == 0 ? 1100 : 1110));
  /* The library's own pointer has moved along, where it has the view (docs/decisions/0073). */
  CHECK(MPI_File_read(fh, memory, 7, MPI_BYTE, &status) == MPI_SUCCESS);
  expect(memory, rank == 0 ? 1100 : 1110, 7);
  if (ranks == 1) got -= 7; /* by the library */
  CHECK(MPI_File_read_at_all(fh, 5, memory, 3, MPI_BYTE, &status) == MPI_SUCCESS);
  expect(memory, 5, 3);
  CHECK(MPI_File_get_position(fh, &at) == MPI_SUCCESS && at == (rank == 0 ? 1107 : 1117));
}

static void split(MPI_File fh) {
  MPI_Status status;
  MPI_Offset at = -1;
  clear();
  CHECK(MPI_File_read_at_all_begin(fh, 20, memory, 300, MPI_BYTE) == MPI_SUCCESS);
  CHECK(MPI_File_read_at_all_end(fh, memory, &status) == MPI_SUCCESS);
  CHECK(bytes_of(&status) == 300);
  expect(memory, 20, 300);
  CHECK(MPI_File_seek(fh, 40, MPI_SEEK_SET) == MPI_SUCCESS);
  CHECK(MPI_File_read_all_begin(fh, memory, 200, MPI_BYTE) == MPI_SUCCESS);
  CHECK(MPI_File_read_all_end(fh, memory, &status) == MPI_SUCCESS);
  CHECK(bytes_of(&status) == 200);
  expect(memory, 40, 200);
  CHECK(MPI_File_get_position(fh, &at) == MPI_SUCCESS && at == 240);
}

/* Two bytes of three: what lies between is left alone. */
static void memory_types(MPI_File fh) {
  MPI_Datatype gaps;
  MPI_Status status;
  MPI_Type_vector(n / 2, 2, 3, MPI_BYTE, &gaps);
  MPI_Type_commit(&gaps);
  clear();
  CHECK(MPI_File_read_at_all(fh, 0, memory, 1, gaps, &status) == MPI_SUCCESS);
  CHECK(bytes_of(&status) == n);
  for (int i = 0; i < n; ++i) CHECK(memory[i / 2 * 3 + i % 2] == value_at(place(i)));
  for (int i = 0; i + 1 < n / 2; ++i) CHECK(memory[3 * i + 2] == 0);
  got += n;
  MPI_Type_free(&gaps);
}

/* Each rank's stream ends at its own place; behind it memory is untouched. */
static void where_the_file_ends(MPI_File fh) {
  MPI_Status status;
  const int wanted = 40 + rank;
  clear();
  CHECK(MPI_File_read_at_all(fh, n - 30, memory, wanted, MPI_BYTE, &status) == MPI_SUCCESS);
  CHECK(bytes_of(&status) == 30);
  expect(memory, n - 30, 30);
  for (int i = 30; i < 200; ++i) CHECK(memory[i] == 0);
  CHECK(MPI_File_read_at_all(fh, n + 5, memory, 20, MPI_BYTE, &status) == MPI_SUCCESS);
  CHECK(bytes_of(&status) == 0);
}

/* Counted whole under ROMIO, and by more than two ranks under OMPIO: HDF5 clears as many bytes of
 * memory as a count leaves out, from where they would be without the gaps. */
static void into_gaps_where_the_file_ends(MPI_File fh) {
  MPI_Datatype gaps;
  MPI_Status status;
  MPI_Type_vector(20, 2, 3, MPI_BYTE, &gaps);
  MPI_Type_commit(&gaps);
  clear();
  CHECK(MPI_File_read_at_all(fh, n - 30, memory, 1, gaps, &status) == MPI_SUCCESS);
#ifdef OPEN_MPI
  CHECK(bytes_of(&status) == (ranks > 2 ? 40 : 30));
#else
  CHECK(bytes_of(&status) == 40);
#endif
  for (int i = 0; i < 30; ++i) CHECK(memory[i / 2 * 3 + i % 2] == value_at(place(n - 30 + i)));
  for (int i = 0; i < 15; ++i) CHECK(memory[3 * i + 2] == 0);
  for (int i = 45; i < 200; ++i) CHECK(memory[i] == 0);
  got += 30;
  MPI_Type_free(&gaps);
}

/* All ranks the same bytes; then a part each, without a view. */
static void whole_file(MPI_File fh) {
  MPI_Status status;
  CHECK(MPI_File_set_view(fh, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL) == MPI_SUCCESS);
  clear();
  CHECK(MPI_File_read_at_all(fh, 0, memory, n, MPI_BYTE, &status) == MPI_SUCCESS);
  for (int i = 0; i < n; ++i) CHECK(memory[i] == value_at(i));
  CHECK(MPI_File_read_at_all(fh, (MPI_Offset)rank * n, memory, n, MPI_BYTE, &status) ==
        MPI_SUCCESS);
  CHECK(bytes_of(&status) == n);
  for (int i = 0; i < n; ++i) CHECK(memory[i] == value_at((long long)rank * n + i));
  got += 2 * n;
}

/* Read and written in turns through one handle. */
static void turns(void) {
  MPI_File fh = open_as(MPI_MODE_RDWR);
  char mine[64], theirs[64];
  const int next = (rank + 1) % ranks;
  for (int round = 0; round < 5; ++round) {
    memset(mine, 1 + round * ranks + rank, sizeof mine);
    CHECK(MPI_File_write_at_all(fh, 64LL * rank, mine, 64, MPI_BYTE, MPI_STATUS_IGNORE) ==
          MPI_SUCCESS);
    CHECK(MPI_File_read_at_all(fh, 64LL * next, theirs, 64, MPI_BYTE, MPI_STATUS_IGNORE) ==
          MPI_SUCCESS);
    for (int i = 0; i < 64; ++i) CHECK(theirs[i] == 1 + round * ranks + next);
    written += 64;
    got += 64;
    MPI_Barrier(MPI_COMM_WORLD);
  }
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
}

int main(int argc, char** argv) {
  start_job(argc, argv);
  write_everything();
  MPI_File fh = open_as(MPI_MODE_RDONLY);
  set_view(fh);
  pointers(fh);
  split(fh);
  memory_types(fh);
  /* Where the library reads, a strided view's count at the end of the file is not true. */
  if (getenv("PENSTOCK_READ") == NULL) {
    where_the_file_ends(fh);
    into_gaps_where_the_file_ends(fh);
  }
  whole_file(fh);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  turns();
  tell("written", written);
  tell("read", got);
  MPI_Finalize();
  return 0;
}
