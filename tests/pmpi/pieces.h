/* A file in pieces, dealt to the ranks in turn: what a rank writes has gaps that are others'. */
#ifndef PENSTOCK_TESTS_PMPI_PIECES_H
#define PENSTOCK_TESTS_PMPI_PIECES_H

#include <string.h>

#include "job.h"

enum { piece_bytes = 256, pieces = 512, turns = 8, turn_bytes = pieces / turns * piece_bytes };

/* Collective over the file's ranks, with the hints of one who wants gaps read. Whether the library
 * knows `datarep`. */
static inline int see_own_pieces(MPI_File file, const char* datarep) {
  MPI_Datatype piece, view;
  MPI_Type_contiguous(piece_bytes, MPI_BYTE, &piece);
  MPI_Type_create_resized(piece, 0, (MPI_Aint)ranks * piece_bytes, &view);
  MPI_Type_commit(&view);
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "romio_ds_write", "enable");
  MPI_Info_set(info, "romio_cb_write", "enable");
  const int rc =
      MPI_File_set_view(file, (MPI_Offset)rank * piece_bytes, MPI_BYTE, view, datarep, info);
  MPI_Info_free(&info);
  MPI_Type_free(&view);
  MPI_Type_free(&piece);
  return rc == MPI_SUCCESS;
}

/* Whether rank r has written `value` + r everywhere in its own. */
static inline int are_pieces(int value) {
  const long file_bytes = (long)pieces * ranks * piece_bytes;
  char* const got = malloc((size_t)file_bytes);
  long at = 0;
  CHECK(got != NULL && read_back(path, 0, got, file_bytes) == file_bytes);
  while (at < file_bytes && got[at] == value + at / piece_bytes % ranks) ++at;
  if (at < file_bytes)
    printf("byte %ld of rank %ld is %d, not %d\n", at, at / piece_bytes % ranks, got[at],
           value + (int)(at / piece_bytes % ranks));
  free(got);
  return at == file_bytes;
}

#endif
