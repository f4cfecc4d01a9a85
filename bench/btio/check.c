/* Reads back what BT-IO wrote, by pread alone, and compares every byte. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data.h"

/* A file that ends too soon holds wrong bytes: zeros are compared. */
static bool read_fully(struct Peer* peer, int fd, double* to, int64_t n, int64_t place) {
  char* bytes = (char*)to;
  size_t left = (size_t)n * sizeof *to;
  off_t at = (off_t)place * (off_t)sizeof *to;
  while (left > 0) {
    const ssize_t got = pread(fd, bytes, left, at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      peer_fail(peer, "verify", "MPI_ERR_IO", "pread: %s", strerror(errno));
      return false;
    }
    if (got == 0) break;
    bytes += got, at += got, left -= (size_t)got;
  }
  memset(bytes, 0, left);
  return true;
}

static int open_to_check(struct Peer* peer, const char* path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) peer_fail(peer, "verify", "MPI_ERR_IO", "open %s: %s", path, strerror(errno));
  return fd;
}

static void check_row(struct Peer* peer, const double* row, int64_t n, int64_t place,
                      int64_t output) {
  int64_t first = 0;
  char text[96] = "";
  const int64_t wrong = btio_compare(peer, row, n, place, output, &first);
  if (wrong > 0)
    snprintf(text, sizeof text, "output %" PRId64 ", double %" PRId64, output, place + first);
  peer_verified(peer, n * 8, wrong * 8, text);
}

/* What follows the last output is wrong too. */
static void check_size(struct Peer* peer, int fd, int64_t words) {
  struct stat s;
  char text[96];
  if (fstat(fd, &s) != 0 || s.st_size <= words * 8) return;
  snprintf(text, sizeof text, "%" PRId64 " bytes behind the end", (int64_t)s.st_size - words * 8);
  peer_verified(peer, 0, s.st_size - words * 8, text);
}

/* A line of points is cut at the same places for every rank's cells. */
static void check_line(struct Peer* peer, const struct BtioGrid* grid, const double* line,
                       int64_t place, int64_t output) {
  for (int c = 0; c < grid->cells; ++c) {
    const int64_t begin = btio_cell_start(grid->edge, grid->cells, c) * BTIO_WORDS;
    const int64_t end = btio_cell_start(grid->edge, grid->cells, c + 1) * BTIO_WORDS;
    check_row(peer, line + begin, end - begin, place + begin, output);
  }
}

/* The ranks share the planes of all outputs. */
void btio_check_shared(struct Peer* peer, const struct BtioGrid* grid, int64_t outputs) {
  const int64_t edge = grid->edge, line = edge * BTIO_WORDS, plane = edge * line;
  int64_t begin, end;
  peer_share(peer, outputs * edge, &begin, &end);
  double* values = malloc((size_t)plane * sizeof *values);
  const int fd = open_to_check(peer, peer->file);
  if (values == NULL) peer_fail(peer, "verify", "MPI_ERR_NO_MEM", "a plane of the grid");
  for (int64_t p = begin; values != NULL && fd >= 0 && p < end; ++p) {
    if (!read_fully(peer, fd, values, plane, p * plane)) break;
    for (int64_t y = 0; y < edge; ++y)
      check_line(peer, grid, values + y * line, p % edge * plane + y * line, p / edge);
  }
  if (fd >= 0 && peer->rank == 0) check_size(peer, fd, outputs * edge * plane);
  if (fd >= 0) close(fd);
  free(values);
}

static bool check_cell(struct Peer* peer, const struct BtioGrid* grid, int c, int64_t output,
                       int fd, int64_t* at, double* values) {
  const struct BtioCell* cell = &grid->cell[c];
  const int64_t row = (int64_t)cell->count[2] * BTIO_WORDS;
  const int64_t words = row * cell->count[0] * cell->count[1];
  if (!read_fully(peer, fd, values, words, *at)) return false;
  for (int z = 0; z < cell->count[0]; ++z)
    for (int y = 0; y < cell->count[1]; ++y)
      check_row(peer, values + ((int64_t)z * cell->count[1] + y) * row, row,
                btio_row_place(grid, cell, z, y), output);
  *at += words;
  return true;
}

/* A file per process: this rank's cells, output after output. */
void btio_check_own(struct Peer* peer, const struct BtioGrid* grid, int64_t outputs,
                    const char* path) {
  double* values = malloc((size_t)btio_rank_words(grid) * sizeof *values);
  const int fd = open_to_check(peer, path);
  if (values == NULL) peer_fail(peer, "verify", "MPI_ERR_NO_MEM", "the cells of a rank");
  bool good = values != NULL && fd >= 0;
  int64_t at = 0;
  for (int64_t o = 0; o < outputs; ++o)
    for (int c = 0; good && c < grid->cells; ++c)
      good = check_cell(peer, grid, c, o, fd, &at, values);
  if (good) check_size(peer, fd, at);
  if (fd >= 0) close(fd);
  free(values);
}
