/* Every function that Penstock takes, against what MPI promises of it: `taken FILE`, any number of
 * ranks. Prints the bytes that all ranks wrote. It asks for more than the libraries keep by
 * themselves (MPICH 4.0 aborts on pair types and refuses empty ones). */
#include <limits.h>
#include <string.h>

#include "job.h"

static long long written; /* by this rank */

static void fill(int* a, int n, int seed) {
  for (int i = 0; i < n; ++i) a[i] = seed * 1000003 + i;
}

static void check_file(long first_int, const int* expected, int n) {
  int* got = malloc(sizeof(int) * (size_t)n);
  CHECK(read_back(path, first_int * 4, got, 4L * n) == 4L * n);
  CHECK(memcmp(got, expected, sizeof(int) * (size_t)n) == 0);
  free(got);
}

/* write_at and write_at_all count in etypes and leave the pointer where it was. */
static void explicit_offsets(void) {
  enum { n = 1000 };
  int a[n];
  MPI_Status status;
  MPI_Offset position = -1, size = -1;
  MPI_File fh = open_fresh();
  fill(a, n, rank);
  CHECK(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL) == MPI_SUCCESS);
  CHECK(MPI_File_write_at_all(fh, (MPI_Offset)rank * n, a, n, MPI_INT, &status) == MPI_SUCCESS);
  CHECK(bytes_of(&status) == 4 * n);
  check_file((long)rank * n, a, n); /* a returned write is in the file */
  CHECK(MPI_File_get_position(fh, &position) == MPI_SUCCESS && position == 0);
  fill(a, n, rank + 100);
  CHECK(MPI_File_write_at(fh, (MPI_Offset)(ranks + rank) * n, a, n, MPI_INT, &status) ==
        MPI_SUCCESS);
  CHECK(bytes_of(&status) == 4 * n);
  check_file((long)(ranks + rank) * n, a, n);
  CHECK(MPI_File_write_at(fh, 0, a, 0, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(MPI_File_get_size(fh, &size) == MPI_SUCCESS && size == 8LL * ranks * n);
  written += 8 * n;
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS && fh == MPI_FILE_NULL);
}

/* write and write_all move the pointer; seek and get_byte_offset agree with them. */
static void individual_pointer(void) {
  enum { n = 500 };
  int a[n], b[n];
  MPI_Status status;
  MPI_Offset position = -1, offset = -1;
  MPI_Datatype tile;
  MPI_File fh = open_fresh();
  fill(a, n, rank + 7);
  MPI_Type_create_resized(MPI_INT, 0, 4LL * ranks, &tile); /* one int of each rank in turn */
  MPI_Type_commit(&tile);
  CHECK(MPI_File_set_view(fh, 4LL * rank, MPI_INT, tile, "native", MPI_INFO_NULL) == MPI_SUCCESS);
  CHECK(MPI_File_write_all(fh, a, n / 2, MPI_INT, &status) == MPI_SUCCESS);
  CHECK(bytes_of(&status) == 2 * n);
  CHECK(MPI_File_get_position(fh, &position) == MPI_SUCCESS && position == n / 2);
  CHECK(MPI_File_get_byte_offset(fh, position, &offset) == MPI_SUCCESS);
  CHECK(offset == 4LL * rank + 4LL * ranks * (n / 2));
  CHECK(MPI_File_write(fh, a + n / 2, n / 2, MPI_INT, &status) == MPI_SUCCESS);
  CHECK(bytes_of(&status) == 2 * n);
  CHECK(MPI_File_get_position(fh, &position) == MPI_SUCCESS && position == n);
  CHECK(MPI_File_seek(fh, -10, MPI_SEEK_CUR) == MPI_SUCCESS);
  CHECK(MPI_File_write(fh, a + n - 10, 10, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  CHECK(MPI_File_get_position(fh, &position) == MPI_SUCCESS && position == n);
  CHECK(MPI_File_seek(fh, 0, MPI_SEEK_SET) == MPI_SUCCESS);
  memset(b, 0, sizeof b);
  CHECK(MPI_File_read_all(fh, b, n, MPI_INT, &status) == MPI_SUCCESS);
  CHECK(memcmp(a, b, sizeof a) == 0);
  written += 4 * n + 40;
  MPI_Type_free(&tile); /* the view keeps it */
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
}

struct pair {
  double value;
  int where;
};

/* Memory types with holes: pairs, vectors, structs; what lies between is neither read nor written.
 */
static void memory_types(void) {
  enum { n = 64 };
  MPI_Datatype column, odd, subarray;
  MPI_Status status;
  int matrix[n][n], got[n];
  const int blocks[2] = {1, 2}, sizes[2] = {n, n}, subsizes[2] = {4, 3}, starts[2] = {5, 6};
  const MPI_Aint at[2] = {8, 0};
  const MPI_Datatype types[2] = {MPI_INT, MPI_SHORT};
  MPI_File fh = open_fresh();
  fill(&matrix[0][0], n * n, rank);
  MPI_Type_vector(n, 1, n, MPI_INT, &column);
  MPI_Type_commit(&column);
  CHECK(MPI_File_write_at_all(fh, 4LL * n * rank, &matrix[0][3], 1, column, &status) ==
        MPI_SUCCESS);
  CHECK(bytes_of(&status) == 4 * n);
  CHECK(read_back(path, 4L * n * rank, got, sizeof got) == sizeof got);
  for (int i = 0; i < n; ++i) CHECK(got[i] == matrix[i][3]);
  MPI_Type_create_struct(2, blocks, at, types, &odd); /* the int lies behind the shorts */
  MPI_Type_commit(&odd);
  CHECK(MPI_File_write_at(fh, 4LL * n * ranks + 8 * rank, matrix, 1, odd, &status) == MPI_SUCCESS);
  CHECK(bytes_of(&status) == 8);
  CHECK(read_back(path, 4L * n * ranks + 8 * rank, got, 8) == 8);
  CHECK(got[0] == matrix[0][2] && got[1] == matrix[0][0]);
  MPI_Barrier(MPI_COMM_WORLD); /* all have read: now over what lies there */
  MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &subarray);
  MPI_Type_commit(&subarray);
  CHECK(MPI_File_write_at(fh, 48LL * rank, matrix, 1, subarray, &status) == MPI_SUCCESS);
  CHECK(bytes_of(&status) == 48 && read_back(path, 48L * rank, got, 48) == 48);
  for (int i = 0; i < 12; ++i) CHECK(got[i] == matrix[5 + i / 3][6 + i % 3]);
  written += 4 * n + 8 + 48;
  MPI_Type_free(&column);
  MPI_Type_free(&odd);
  MPI_Type_free(&subarray);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
}

/* The hole of a pair stays in memory. */
static void pair_types(void) {
  struct pair pairs[3];
  char got[36];
  MPI_Status status;
  MPI_File fh = open_fresh();
  memset(pairs, 0x55, sizeof pairs);
  for (int i = 0; i < 3; ++i) pairs[i].value = rank + i / 4.0, pairs[i].where = i;
  CHECK(MPI_File_write_at_all(fh, 36LL * rank, pairs, 3, MPI_DOUBLE_INT, &status) == MPI_SUCCESS);
  CHECK(bytes_of(&status) == 36 && read_back(path, 36L * rank, got, 36) == 36);
  for (int i = 0; i < 3; ++i) {
    CHECK(memcmp(got + 12 * i, &pairs[i].value, 8) == 0);
    CHECK(memcmp(got + 12 * i + 8, &pairs[i].where, 4) == 0);
  }
  written += 36;
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
}

/* A handle that is freed and made anew must not bring back the old type. */
static void reused_handles(void) {
  int a[64], got[8];
  MPI_File fh = open_fresh();
  fill(a, 64, rank);
  for (int stride = 1; stride <= 8; ++stride) {
    MPI_Datatype type;
    MPI_Type_vector(8, 1, stride, MPI_INT, &type);
    MPI_Type_commit(&type);
    CHECK(MPI_File_write_at(fh, 32LL * rank, a, 1, type, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(read_back(path, 32L * rank, got, 32) == 32);
    for (int i = 0; i < 8; ++i) CHECK(got[i] == a[i * stride]);
    MPI_Type_free(&type);
    written += 32;
  }
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
}

static void sizes_and_state(void) {
  int a[4] = {1, 2, 3, 4}, flag = -1, amode = 0;
  MPI_Offset size = 0, displacement = -1;
  MPI_Datatype etype, filetype;
  char datarep[MPI_MAX_DATAREP_STRING];
  MPI_Info info;
  MPI_File fh = open_fresh();
  CHECK(MPI_File_write_at(fh, 16LL * rank, a, 4, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  CHECK(MPI_File_sync(fh) == MPI_SUCCESS);
  CHECK(MPI_File_set_size(fh, 8) == MPI_SUCCESS);
  CHECK(MPI_File_get_size(fh, &size) == MPI_SUCCESS && size == 8);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(MPI_File_preallocate(fh, 4096) == MPI_SUCCESS);
  CHECK(MPI_File_get_size(fh, &size) == MPI_SUCCESS && size == 4096);
  CHECK(MPI_File_get_amode(fh, &amode) == MPI_SUCCESS);
  CHECK(amode == (MPI_MODE_CREATE | MPI_MODE_RDWR));
  CHECK(MPI_File_get_atomicity(fh, &flag) == MPI_SUCCESS && flag == 0);
  CHECK(MPI_File_set_view(fh, 12, MPI_INT, MPI_INT, "native", MPI_INFO_NULL) == MPI_SUCCESS);
  CHECK(MPI_File_get_view(fh, &displacement, &etype, &filetype, datarep) == MPI_SUCCESS);
  CHECK(displacement == 12 && strcmp(datarep, "native") == 0);
  CHECK(MPI_File_get_info(fh, &info) == MPI_SUCCESS);
  MPI_Info_free(&info);
  written += 16;
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) CHECK(MPI_File_delete(path, MPI_INFO_NULL) == MPI_SUCCESS);
  if (rank == 0) CHECK(class_of(MPI_File_delete(path, MPI_INFO_NULL)) == MPI_ERR_NO_SUCH_FILE);
}

/* A rank with nothing to write, and one whose filetype is empty, take part all the same. */
static void empty_ranks(void) {
  int a[16], b[16];
  MPI_Status status;
  MPI_Datatype nothing;
  MPI_File fh = open_fresh();
  fill(a, 16, rank);
  MPI_Type_contiguous(0, MPI_INT, &nothing);
  MPI_Type_commit(&nothing);
  CHECK(MPI_File_write_at_all(fh, 64LL * rank, a, rank == 0 ? 0 : 16, MPI_INT, &status) ==
        MPI_SUCCESS);
  CHECK(bytes_of(&status) == (rank == 0 ? 0 : 64));
  CHECK(MPI_File_write_all(fh, a, 3, nothing, &status) == MPI_SUCCESS && bytes_of(&status) == 0);
  if (rank > 0) check_file(16L * rank, a, 16);
  if (rank > 0) written += 64;
  CHECK(MPI_File_read_at_all(fh, 64LL * rank, b, rank == 0 ? 0 : 16, MPI_INT, &status) ==
        MPI_SUCCESS);
  if (rank > 0) CHECK(memcmp(a, b, sizeof a) == 0);
  CHECK(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL) == MPI_SUCCESS);
  CHECK(MPI_File_write_at_all(fh, rank == 0 ? LLONG_MAX : 16LL * rank, a, rank == 0 ? 0 : 16,
                              MPI_INT, &status) == MPI_SUCCESS);
  if (rank > 0) written += 64;
  MPI_Type_free(&nothing);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
}

/* What the library does between two writes. Each moves the pointer by a block. */
static void read_now(MPI_File fh, char* got, int bytes) {
  CHECK(MPI_File_read(fh, got, bytes, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

static void read_later(MPI_File fh, char* got, int bytes) {
  MPI_Request request;
  CHECK(MPI_File_iread(fh, got, bytes, MPI_BYTE, &request) == MPI_SUCCESS);
  CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

static void read_in_halves(MPI_File fh, char* got, int bytes) {
  CHECK(MPI_File_read_all_begin(fh, got, bytes, MPI_BYTE) == MPI_SUCCESS);
  CHECK(MPI_File_read_all_end(fh, got, MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

static void read_after_seeks(MPI_File fh, char* got, int bytes) {
  CHECK(MPI_File_seek(fh, -1, MPI_SEEK_SET) != MPI_SUCCESS);
  read_now(fh, got, bytes);
  CHECK(MPI_File_seek(fh, -2 * bytes, MPI_SEEK_CUR) != MPI_SUCCESS);
  CHECK(MPI_File_seek(fh, -bytes, MPI_SEEK_CUR) == MPI_SUCCESS);
  CHECK(MPI_File_seek(fh, bytes, MPI_SEEK_CUR) == MPI_SUCCESS);
}

/* The pointer stays right where the library reads between two writes, in a view whose lower bound
 * lies behind its first byte: ROMIO's own word of where it is would be wrong there. */
static void read_between(void (*read_block)(MPI_File, char*, int)) {
  enum { block = 4, lb = 12, tile = 16 };
  const char data[] = "abcdefghijkl";
  char got[block];
  MPI_Datatype bytes, view;
  MPI_Offset position = -1;
  MPI_File fh = open_fresh();
  const long mine = (long)rank * block, other = (long)ranks * tile;
  MPI_Type_contiguous(block, MPI_BYTE, &bytes);
  MPI_Type_create_resized(bytes, lb, (MPI_Aint)other, &view);
  MPI_Type_commit(&view);
  MPI_Type_free(&bytes);
  CHECK(MPI_File_set_view(fh, mine, MPI_BYTE, view, "native", MPI_INFO_NULL) == MPI_SUCCESS);
  MPI_Type_free(&view);
  CHECK(MPI_File_write(fh, data, 2 * block, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  CHECK(MPI_File_seek(fh, 0, MPI_SEEK_SET) == MPI_SUCCESS);
  read_block(fh, got, block);
  CHECK(memcmp(got, data, block) == 0);
  CHECK(MPI_File_get_position(fh, &position) == MPI_SUCCESS && position == block);
  CHECK(MPI_File_write(fh, data + 2 * block, block, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  written += 3 * block;
  CHECK(read_back(path, mine + other, got, block) == block);
  CHECK(memcmp(got, data + 2 * block, block) == 0);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
}

/* A read that the end of the file cuts: the pointer is where the library has it. */
static void read_past_the_end(void (*read_block)(MPI_File, char*, int)) {
  char got[16] = "";
  MPI_Offset position = -1, library = -1;
  MPI_File fh = open_fresh();
  MPI_File_seek(fh, 0, MPI_SEEK_SET);
  if (rank == 0)
    CHECK(MPI_File_write_at(fh, 0, "abcdef", 6, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  if (rank == 0) written += 6;
  CHECK(MPI_File_sync(fh) == MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(MPI_File_sync(fh) == MPI_SUCCESS);
  read_block(fh, got, sizeof got);
  CHECK(memcmp(got, "abcdef", 6) == 0);
  CHECK(PMPI_File_get_position(fh, &library) == MPI_SUCCESS);
  CHECK(MPI_File_get_position(fh, &position) == MPI_SUCCESS && position == library);
  CHECK(MPI_File_seek(fh, 0, MPI_SEEK_CUR) == MPI_SUCCESS);
  CHECK(PMPI_File_get_position(fh, &position) == MPI_SUCCESS && position == library);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
}

int main(int argc, char** argv) {
  start_job(argc, argv);
  explicit_offsets();
  individual_pointer();
  memory_types();
  reused_handles();
  sizes_and_state();
  empty_ranks();
  pair_types();
  read_between(read_now);
  read_between(read_later);
  read_between(read_in_halves);
  read_between(read_after_seeks);
#ifndef OPEN_MPI /* whose own MPI_File_iread never ends there */
  read_past_the_end(read_later);
#endif
  read_past_the_end(read_in_halves);
  tell("written", written);
  MPI_Finalize();
  return 0;
}
