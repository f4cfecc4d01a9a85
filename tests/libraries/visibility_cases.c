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

static void check_piece(const char* path, int of) {
  char wanted[PIECE], got[PIECE];
  fill(wanted, of);
  const int file = open(path, O_RDONLY);
  CHECK(file >= 0);
  CHECK(pread(file, got, PIECE, (off_t)of * PIECE) == PIECE && memcmp(got, wanted, PIECE) == 0);
  close(file);
}

/* Every rank's bytes are read by the next rank, without sync or close. */
static void write_at_once(const char* path) {
  char name[4200], piece[PIECE];
  MPI_File file = MPI_FILE_NULL;
  snprintf(name, sizeof name, "nfs:%s", path);
  const int mode = MPI_MODE_CREATE | MPI_MODE_RDWR;
  CHECK(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file) == MPI_SUCCESS);
  const int refused = must_sync(file);
  CHECK(!refused);
  fill(piece, rank);
  CHECK(MPI_File_write_at(file, (MPI_Offset)rank * PIECE, piece, PIECE, MPI_BYTE,
                          MPI_STATUS_IGNORE) == MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  if (!refused) check_piece(path, (rank + 1) % ranks);
  MPI_File_close(&file);
}

static void read_pieces(const char* path) {
  for (int i = 0; i < ranks; ++i) check_piece(path, i);
}

int main(int argc, char** argv) {
  static const struct library_case cases[] = {
      {"independent_on_nfs", write_at_once, read_pieces},
      {NULL, NULL, NULL},
  };
  return run_cases(argc, argv, cases, ".dat", "HDF5's rule for NFS");
}
