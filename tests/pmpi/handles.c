/* Two handles on one file, as PnetCDF has them: one of all ranks, and each rank's own. What a rank
 * writes through its own goes behind, into pages that all ranks share; whatever asks by either
 * handle finds it, in the order of the calls, and a loss is told by both. `handles FILE`, any
 * number of ranks. */
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "job.h"

enum { n = 64, turns = 512, rounds = 6 };

static char data[n], got[n];
static long long written;
static MPI_File all, own;

static MPI_Offset place(int round, int turn, int of) {
  return ((MPI_Offset)(round * turns + turn) * ranks + of) * n;
}

static void put(MPI_File fh, MPI_Offset at, int value) {
  memset(data, value, n);
  written += n;
  CHECK(MPI_File_write_at(fh, at, data, n, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

static void open_both(void) {
  all = open_as(MPI_MODE_CREATE | MPI_MODE_RDWR);
  CHECK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR, MPI_INFO_NULL, &own) == MPI_SUCCESS);
}

/* PnetCDF sets a view before each put and after it: the bytes stay in their page. */
static void stays(void) {
  MPI_File fh;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "penstock_write_behind_seconds", "600");
  if (rank == 0) {
    CHECK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, info, &fh) ==
          MPI_SUCCESS);
    put(fh, 0, '?');
    CHECK(MPI_File_set_view(fh, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL) == MPI_SUCCESS);
    CHECK(read_back(path, 0, got, n) == 0);
    CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
    CHECK(read_back(path, 0, got, n) == n);
  }
  MPI_Info_free(&info);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* A handle that appends begins behind what the first one has in its page. */
static void appends(void) {
  MPI_File fh, more;
  MPI_Info info;
  MPI_Offset end = 0;
  MPI_Info_create(&info);
  MPI_Info_set(info, "penstock_write_behind_seconds", "600");
  if (rank == 0) {
    CHECK(MPI_File_delete(path, MPI_INFO_NULL) == MPI_SUCCESS);
    CHECK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, info, &fh) ==
          MPI_SUCCESS);
    put(fh, 0, '?');
    CHECK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_WRONLY | MPI_MODE_APPEND, info, &more) ==
          MPI_SUCCESS);
    CHECK(MPI_File_get_position(more, &end) == MPI_SUCCESS && end == n);
    CHECK(MPI_File_close(&more) == MPI_SUCCESS);
    CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  }
  MPI_Info_free(&info);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void put_round(MPI_File fh, int round) {
  for (int turn = 0; turn < turns; ++turn) put(fh, place(round, turn, rank), 'a' + rank);
}

static void check_got(int value) {
  for (int i = 0; i < n; ++i) CHECK(got[i] == value);
}

/* Another rank's, by this handle. */
static void check_next(MPI_File fh, int round) {
  const int next = (rank + 1) % ranks;
  memset(got, 0, n);
  CHECK(MPI_File_read_at(fh, place(round, turns - 1, next), got, n, MPI_BYTE, MPI_STATUS_IGNORE) ==
        MPI_SUCCESS);
  check_got('a' + next);
}

static void check_plain(int round) {
  for (int turn = 0; turn < turns; ++turn)
    for (int of = 0; of < ranks; ++of) {
      CHECK(read_back(path, (long)place(round, turn, of), got, n) == n);
      check_got('a' + of);
    }
}

static void meet(void) { MPI_Barrier(MPI_COMM_WORLD); }

/* Without a sync too: a read by MPI flushes what the node's ranks have accepted. */
static void reads(void) {
  put_round(own, 0);
  meet();
  check_next(all, 0);
  put_round(own, 1);
  meet();
  check_next(own, 1);
  CHECK(MPI_File_sync(own) == MPI_SUCCESS);
  meet();
  CHECK(MPI_File_sync(all) == MPI_SUCCESS);
  check_plain(0);
  check_plain(1);
}

static void sizes(void) {
  MPI_Offset size = 0;
  put_round(own, 2);
  CHECK(MPI_File_get_size(all, &size) == MPI_SUCCESS);
  CHECK(size >= place(2, turns - 1, rank) + n);
  meet();
  CHECK(MPI_File_set_size(all, place(3, 0, 0)) == MPI_SUCCESS);
  check_plain(2);
}

/* A rank's later call wins, through whichever handle. */
static void order(void) {
  MPI_Request request;
  for (int turn = 0; turn < turns; ++turn) put(turn % 2 ? all : own, place(3, turn, rank), '?');
  for (int turn = 0; turn < turns; ++turn) put(turn % 2 ? own : all, place(3, turn, rank), '!');
  for (int turn = 0; turn < turns; ++turn) {
    MPI_File fh = turn % 3 ? own : all;
    memset(data, 'a' + rank, n);
    written += n;
    CHECK(MPI_File_iwrite_at(fh, place(3, turn, rank), data, n, MPI_BYTE, &request) == MPI_SUCCESS);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  }
  CHECK(MPI_File_sync(own) == MPI_SUCCESS);
  meet();
  check_plain(3);
}

static void views(void) {
  MPI_Datatype tile;
  MPI_Type_create_resized(MPI_BYTE, 0, ranks, &tile);
  MPI_Type_commit(&tile);
  const MPI_Offset begin = place(4, 0, 0);
  CHECK(MPI_File_set_view(own, begin + rank, MPI_BYTE, tile, "native", MPI_INFO_NULL) ==
        MPI_SUCCESS);
  for (int turn = 0; turn < turns; ++turn) {
    memset(data, 'a' + rank, n);
    written += n;
    CHECK(MPI_File_write(own, data, n, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  }
  MPI_Type_free(&tile);
  meet();
  memset(got, 0, n);
  CHECK(MPI_File_read_at_all(all, begin, got, n, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  for (int i = 0; i < n; ++i) CHECK(got[i] == 'a' + i % ranks);
  CHECK(MPI_File_set_view(own, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL) == MPI_SUCCESS);
}

static void close_in_turn(void) {
  put_round(own, 5);
  CHECK(MPI_File_close(&all) == MPI_SUCCESS);
  put_round(own, 5);
  CHECK(MPI_File_close(&own) == MPI_SUCCESS);
  meet();
  check_plain(5);
  open_both();
  put_round(own, 5);
  CHECK(MPI_File_close(&own) == MPI_SUCCESS);
  put_round(all, 5);
  CHECK(MPI_File_close(&all) == MPI_SUCCESS);
  check_plain(5);
}

/* No file may grow beyond a limit now. */
static void lost(void) {
  struct rlimit before, small;
  open_both();
  signal(SIGXFSZ, SIG_IGN);
  CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
  small = before;
  small.rlim_cur = (rlim_t)place(rounds, 0, 0);
  CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
  meet();
  put(own, place(rounds, 0, rank), '?');
  written -= n;
  meet();
  CHECK(class_of(MPI_File_sync(own)) == MPI_ERR_IO);
  meet();
  CHECK(class_of(MPI_File_sync(all)) == MPI_ERR_IO);
  CHECK(class_of(MPI_File_close(&own)) == MPI_ERR_IO);
  CHECK(class_of(MPI_File_close(&all)) == MPI_ERR_IO);
  CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
}

int main(int argc, char** argv) {
  start_job(argc, argv);
  stays();
  appends();
  open_both();
  reads();
  sizes();
  order();
  views();
  close_in_turn();
  lost();
  tell("written", written);
  MPI_Finalize();
  return 0;
}
