/* NAS BT-IO without BT: what the benchmark writes, and nothing of what it computes. Every output
 * appends one array of a grid's points, five doubles each, which the ranks hold in diagonal
 * multi-partitioning. Three of NAS's subtypes: full (collective, through a file view), simple (an
 * independent call for each row of points) and epio (a file per process).
 *
 * The clock runs from before the open until after the close, as in liao-2007 (section 4.1). BT-IO
 * has no MPI_File_sync in it, and Penstock looks at that: with PENSTOCK_BTIO_NEVER_SYNCS this has
 * none either; without, --end sync calls it before the close. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data.h"

static struct Peer peer = {.program = "btio",
                           .summary = "what NAS BT-IO writes: needs 1, 4, 9, 16, ... ranks",
                           .version = "1",
                           .own_amount = true,
                           .marker = "rank.0"};
static const char* class_name = "S";
static const char* subtype = "full";
static int64_t outputs = 0;

static const struct PeerOption options[] = {
    {"class", PEER_CHOICE, &class_name, "S|W|A|B|C",
     "12, 24, 64, 102 or 162 points along an edge of the grid"},
    {"subtype", PEER_CHOICE, &subtype, "full|simple|epio",
     "collective, an independent call for each row, a file per process"},
    {"outputs", PEER_COUNT, &outputs, NULL, "arrays to append; 0: as many as the class has"},
};

static bool is(const char* text, const char* other) { return strcmp(text, other) == 0; }

/* ---- one shared file ---- */

/* Types are made before the clock, as BT does; the view is part of opening. */
struct Shared {
  MPI_File file;
  MPI_Datatype in_file, in_memory;
};

static bool open_shared(struct Shared* s, MPI_Info info) {
  const int mode = MPI_MODE_CREATE | MPI_MODE_WRONLY;
  if (!peer_ok_mpi(&peer, "open", MPI_File_open(MPI_COMM_WORLD, peer.file, mode, info, &s->file)))
    return false;
  const MPI_Datatype type = is(subtype, "full") ? s->in_file : MPI_DOUBLE;
  peer_ok_mpi(&peer, "set_view", MPI_File_set_view(s->file, 0, MPI_DOUBLE, type, "native", info));
  return true;
}

static void write_full(const struct Shared* s, const struct BtioData* data, int64_t output) {
  const MPI_Offset at = output * btio_rank_words(&data->grid);
  ++peer.calls;
  peer_ok_mpi(&peer, "write",
              MPI_File_write_at_all(s->file, at, data->values, 1, s->in_memory, MPI_STATUS_IGNORE));
}

static void write_row(const struct Shared* s, const struct BtioData* data, int c, int z, int y,
                      int64_t array) {
  const struct BtioCell* cell = &data->grid.cell[c];
  const MPI_Offset at = array + btio_row_place(&data->grid, cell, z, y);
  ++peer.calls;
  peer_ok_mpi(&peer, "write",
              MPI_File_write_at(s->file, at, btio_row(data, c, z, y), cell->count[2] * BTIO_WORDS,
                                MPI_DOUBLE, MPI_STATUS_IGNORE));
}

static void write_simple(const struct Shared* s, const struct BtioData* data, int64_t output) {
  const int64_t array = output * btio_array_words(data->grid.edge);
  for (int c = 0; c < data->grid.cells; ++c)
    for (int z = 0; z < data->grid.cell[c].count[0]; ++z)
      for (int y = 0; y < data->grid.cell[c].count[1]; ++y) write_row(s, data, c, z, y, array);
}

static void write_outputs(struct Shared* s, struct BtioData* data) {
  for (int64_t o = 0; o < outputs; ++o) {
    btio_stamp(&peer, data, o);
    if (is(subtype, "full"))
      write_full(s, data, o);
    else
      write_simple(s, data, o);
  }
}

#ifdef PENSTOCK_BTIO_NEVER_SYNCS
static const bool can_sync = false;
static void sync_shared(MPI_File file) { (void)file; }
#else
static const bool can_sync = true;
static void sync_shared(MPI_File file) {
  if (is(peer.end, "sync")) peer_ok_mpi(&peer, "sync", MPI_File_sync(file));
}
#endif

static void write_shared(struct BtioData* data) {
  struct Shared s = {MPI_FILE_NULL, btio_file_type(&data->grid), btio_memory_type(data)};
  MPI_Info info = peer_info(&peer);
  peer_begin(&peer);
  const bool opened = open_shared(&s, info);
  peer_lap(&peer, PEER_OPEN);
  if (opened) {
    write_outputs(&s, data);
    peer_lap(&peer, PEER_WRITE);
    sync_shared(s.file);
    peer_lap(&peer, PEER_SYNC);
    peer_ok_mpi(&peer, "close", MPI_File_close(&s.file));
    peer_lap(&peer, PEER_CLOSE);
  }
  peer_end(&peer);
  if (info != MPI_INFO_NULL) MPI_Info_free(&info);
  MPI_Type_free(&s.in_file);
  MPI_Type_free(&s.in_memory);
}

/* ---- a file per process ---- */

static void own_path(char* path, size_t size) {
  snprintf(path, size, "%s/rank.%d", peer.file, peer.rank);
}

static bool ok_errno(const char* where, bool good) {
  if (!good)
    peer_fail(&peer, where, errno == ENOSPC ? "MPI_ERR_NO_SPACE" : "MPI_ERR_IO", "%s: %s",
              peer.file, strerror(errno));
  return good;
}

/* Rank 0 makes the directory. Nobody writes into one that somebody else has made. */
static int open_own(void) {
  char path[4096];
  int made = 0;
  if (peer.rank == 0) made = ok_errno("open", mkdir(peer.file, 0777) == 0);
  MPI_Bcast(&made, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (!made) return -1;
  own_path(path, sizeof path);
  const int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0666);
  ok_errno("open", fd >= 0);
  return fd;
}

static bool write_fully(int fd, const double* values, int64_t n) {
  const char* bytes = (const char*)values;
  for (size_t left = (size_t)n * sizeof *values; left > 0;) {
    const ssize_t done = write(fd, bytes, left);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return ok_errno("write", false);
    bytes += done, left -= (size_t)done;
  }
  return true;
}

/* A cell is gathered and written by one call, as a Fortran program's run time does. */
static bool write_cell(int fd, const struct BtioData* data, int c, double* gathered) {
  const struct BtioCell* cell = &data->grid.cell[c];
  const int64_t row = (int64_t)cell->count[2] * BTIO_WORDS;
  double* to = gathered;
  for (int z = 0; z < cell->count[0]; ++z)
    for (int y = 0; y < cell->count[1]; ++y, to += row)
      memcpy(to, btio_row(data, c, z, y), (size_t)row * sizeof *to);
  ++peer.calls;
  return write_fully(fd, gathered, to - gathered);
}

static void write_outputs_own(int fd, struct BtioData* data, double* gathered) {
  bool good = true;
  for (int64_t o = 0; good && o < outputs; ++o) {
    btio_stamp(&peer, data, o);
    for (int c = 0; good && c < data->grid.cells; ++c) good = write_cell(fd, data, c, gathered);
  }
}

static void write_own(struct BtioData* data) {
  double* gathered = malloc((size_t)btio_rank_words(&data->grid) * sizeof *gathered);
  if (gathered == NULL) peer_fail(&peer, "allocate", "MPI_ERR_NO_MEM", "the cells of a rank");
  peer_begin(&peer);
  const int fd = open_own();
  peer_lap(&peer, PEER_OPEN);
  if (fd >= 0) {
    if (gathered) write_outputs_own(fd, data, gathered);
    peer_lap(&peer, PEER_WRITE);
    if (is(peer.end, "sync")) ok_errno("sync", fsync(fd) == 0);
    peer_lap(&peer, PEER_SYNC);
    ok_errno("close", close(fd) == 0);
    peer_lap(&peer, PEER_CLOSE);
  }
  peer_end(&peer);
  free(gathered);
}

/* ---- */

static void verify(const struct BtioGrid* grid) {
  char path[4096];
  own_path(path, sizeof path);
  if (is(subtype, "epio"))
    btio_check_own(&peer, grid, outputs, path);
  else
    btio_check_shared(&peer, grid, outputs);
}

static void measure(const struct BtioGrid* grid) {
  struct BtioData data = btio_data(&peer, grid);
  if (!peer_any_failed(&peer)) {
    if (is(subtype, "epio"))
      write_own(&data);
    else
      write_shared(&data);
    peer.bytes = outputs * btio_rank_words(grid) * (int64_t)sizeof(double);
  }
  if (!peer_any_failed(&peer) && is(peer.verify, "all")) verify(grid);
  free(data.values);
}

/* What the ranks and the class do not allow; -1: nothing. */
static int refuse(const struct BtioClass* class, int cells) {
  if (cells == 0)
    return peer_usage(&peer, "needs a square number of ranks (1, 4, 9, 16, ...), got %d",
                      peer.ranks);
  if (cells > BTIO_MOST_CELLS || cells > class->edge)
    return peer_usage(&peer, "class %s can be cut for at most %d ranks, got %d", class->name,
                      class->edge < BTIO_MOST_CELLS ? class->edge * class->edge
                                                    : BTIO_MOST_CELLS * BTIO_MOST_CELLS,
                      peer.ranks);
  if (!can_sync && is(peer.end, "sync"))
    return peer_usage(&peer, "this build never syncs: --end close, or peer-btio-*");
  if (outputs < 0) return peer_usage(&peer, "--outputs must be at least 0, got %" PRId64, outputs);
  return -1;
}

static void say_scale(const struct BtioClass* class) {
  if (outputs == class->outputs || peer.rank != 0) return;
  fprintf(stderr, "btio: %" PRId64 " outputs, class %s has %d: scaled by %.3g\n", outputs,
          class->name, class->outputs, (double)outputs / class->outputs);
}

int main(int argc, char** argv) {
  const int code = peer_start(&peer, argc, argv, options, sizeof options / sizeof *options);
  if (code >= 0) return code;
  const struct BtioClass* class = btio_class(class_name);
  const int cells = btio_root(peer.ranks), refused = refuse(class, cells);
  if (refused >= 0) return refused;
  if (outputs == 0) outputs = class->outputs;
  say_scale(class);
  const struct BtioGrid grid = btio_grid(class->edge, cells, peer.rank);
  measure(&grid);
  return peer_finish(&peer);
}
