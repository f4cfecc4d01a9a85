/* What HDF5 from 1.14 on does before an independent write: it asks the file's info whether other
 * ranks see at once what a rank has written, and where they do not (ROMIO says so of NFS), it fails
 * with "Can't perform independent write when MPI_File_sync is required by ROMIO driver". ROMIO
 * treats a file as one on NFS when its name begins with "nfs:". */
#include <fcntl.h>
#include <unistd.h>

#include "cases.h"

enum { PIECE = 1000 };

static void fill(char* piece, int of) {
  for (int i = 0; i < PIECE; ++i) piece[i] = (char)value_at(of, i);
}

static int nodes_of_job(void) {
  MPI_Comm node;
  int place = 0, first, nodes = 0;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &place);
  MPI_Comm_free(&node);
  first = place == 0;
  MPI_Allreduce(&first, &nodes, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  return nodes;
}

/* As H5_mpio_get_file_sync_required decides it. */
static int must_sync(MPI_File file) {
  MPI_Info info = MPI_INFO_NULL;
  char value[MPI_MAX_INFO_VAL + 1] = "";
  int flag = 0;
  CHECK(MPI_File_get_info(file, &info) == MPI_SUCCESS);
  MPI_Info_get(info, "romio_visibility_immediate", MPI_MAX_INFO_VAL, value, &flag);
  MPI_Info_free(&info);
  return flag != 0 && strcmp(value, "false") == 0;
}

/* Nothing of a file in atomic mode is served, so there the answer is the library's. */
static int library_must_sync(MPI_File file) {
  CHECK(MPI_File_set_atomicity(file, 1) == MPI_SUCCESS);
  const int must = must_sync(file);
  CHECK(MPI_File_set_atomicity(file, 0) == MPI_SUCCESS);
  return must;
}

/* On one node HDF5 may write; on several the library's answer stands. */
static void check_answer(MPI_File file) {
  const int must = must_sync(file);
  CHECK(nodes_of_job() == 1 ? !must : must == library_must_sync(file));
}

static void check_piece(const char* path, int of) {
  char wanted[PIECE], got[PIECE];
  fill(wanted, of);
  const int file = open(path, O_RDONLY);
  CHECK(file >= 0);
  CHECK(pread(file, got, PIECE, (off_t)of * PIECE) == PIECE && memcmp(got, wanted, PIECE) == 0);
  close(file);
}

static MPI_File open_on_nfs(const char* path, int mode) {
  char name[4200];
  MPI_File file = MPI_FILE_NULL;
  snprintf(name, sizeof name, "nfs:%s", path);
  CHECK(MPI_File_open(MPI_COMM_WORLD, name, mode | MPI_MODE_CREATE, MPI_INFO_NULL, &file) ==
        MPI_SUCCESS);
  check_answer(file);
  return file;
}

static void write_piece(MPI_File file) {
  char piece[PIECE];
  fill(piece, rank);
  CHECK(MPI_File_write_at(file, (MPI_Offset)rank * PIECE, piece, PIECE, MPI_BYTE,
                          MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

/* Every rank's bytes are read by the next rank, without sync or close. */
static void write_at_once(const char* path) {
  MPI_File file = open_on_nfs(path, MPI_MODE_RDWR);
  write_piece(file);
  MPI_Barrier(MPI_COMM_WORLD);
  if (!must_sync(file)) check_piece(path, (rank + 1) % ranks);
  MPI_File_close(&file);
}

/* What nobody can read by MPI goes behind, and the answer is the same. A sync shows the bytes. */
static void write_behind(const char* path) {
  MPI_File file = open_on_nfs(path, MPI_MODE_WRONLY);
  write_piece(file);
  check_answer(file);
  CHECK(MPI_File_sync(file) == MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  check_piece(path, (rank + 1) % ranks);
  MPI_File_close(&file);
}

static void read_pieces(const char* path) {
  for (int i = 0; i < ranks; ++i) check_piece(path, i);
}

int main(int argc, char** argv) {
  static const struct library_case cases[] = {
      {"independent_on_nfs", write_at_once, read_pieces},
      {"deferred_on_nfs", write_behind, read_pieces},
      {NULL, NULL, NULL},
  };
  const int pretends_nodes = getenv("MPIR_CVAR_NUM_CLIQUES") != NULL;
  return run_cases(argc, argv, cases, ".dat",
                   pretends_nodes ? "HDF5's rule for NFS, on two nodes" : "HDF5's rule for NFS");
}
