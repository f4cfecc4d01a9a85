/* Files at the edges of a job: `lifecycle WHAT FILE`, any number of ranks.
 *   self       each rank writes a file of its own, on MPI_COMM_SELF
 *   cleared    likewise, and all ranks but the first have no environment any more
 *   left-open  a file is still open at MPI_Finalize
 *   left-behind  likewise, and each rank has written a piece of it on its own
 *   late       a file is closed inside MPI_Finalize, by an attribute's callback
 *   damaged    likewise, and somebody has changed a byte of it
 *   left-alone likewise, and ranks have written to it each on its own: small pieces, by turns
 *   begins-late  the first file is opened inside MPI_Finalize, by an attribute's callback
 *   asks-late  left open by all but the first, which asks them for what it has written
 *   nothing    no file at all
 *   exits      as left-alone, and there is no MPI_Finalize
 *   exits-later    likewise, and what runs at the end of the program writes a last turn
 *   exits-in-call  a signal's handler ends the program in the middle of a write
 *   exits-in-close  likewise, while the first rank waits in its close for the others
 *   writes-late  left open, and written inside MPI_Finalize by an attribute's callback
 *   killed     writes, then dies by SIGKILL */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "check.h"

static MPI_File fh;

static int close_late(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm, (void)key, (void)value, (void)extra;
  return MPI_File_close(&fh);
}

/* Every rank does: the last of them closes after it. */
static int damage_and_close(MPI_Comm comm, int key, void* path, void* extra) {
  (void)comm, (void)key, (void)extra;
  const int fd = open(path, O_WRONLY);
  CHECK(pwrite(fd, "!", 1, 0) == 1);
  CHECK(close(fd) == 0);
  CHECK(class_of(MPI_File_close(&fh)) == MPI_ERR_IO);
  return MPI_SUCCESS;
}

static long long write_one(MPI_Comm comm, const char* path) {
  int rank;
  char data[1000];
  MPI_Comm_rank(comm, &rank);
  memset(data, 'x', sizeof data);
  CHECK(MPI_File_open(comm, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &fh) ==
        MPI_SUCCESS);
  CHECK(MPI_File_write_at_all(fh, 1000 * rank, data, 1000, MPI_BYTE, MPI_STATUS_IGNORE) ==
        MPI_SUCCESS);
  return 1000;
}

/* No later call could tell what became of it. */
static long long write_behind(int rank, const char* path) {
  char data[1000];
  memset(data, 'x', sizeof data);
  CHECK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL,
                      &fh) == MPI_SUCCESS);
  /* What the other has written may have been tried by then, and its loss is told here. */
  const int rc = MPI_File_write_at(fh, 1000 * rank, data, 1000, MPI_BYTE, MPI_STATUS_IGNORE);
  CHECK(rc == MPI_SUCCESS || class_of(rc) == MPI_ERR_NO_SPACE);
  return 1000;
}

enum { PIECES = 3000, BYTES = 100 };

/* So many that some are on their way to other nodes, and some wait. */
static long long write_by_turns(const char* path) {
  int rank, ranks;
  char data[BYTES];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  memset(data, 'a' + rank, sizeof data);
  CHECK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL,
                      &fh) == MPI_SUCCESS);
  for (int i = 0; i < PIECES; ++i)
    CHECK(MPI_File_write_at(fh, (MPI_Offset)BYTES * (i * ranks + rank), data, BYTES, MPI_BYTE,
                            MPI_STATUS_IGNORE) == MPI_SUCCESS);
  return PIECES * BYTES;
}

static void write_last(void) {
  int rank, ranks;
  char data[BYTES];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  memset(data, 'a' + rank, sizeof data);
  CHECK(MPI_File_write_at(fh, (MPI_Offset)BYTES * (PIECES * ranks + rank), data, BYTES, MPI_BYTE,
                          MPI_STATUS_IGNORE) == MPI_SUCCESS);
  usleep(300000); /* the launcher kills who has not ended when another has */
}

static void end_here(int signal) {
  (void)signal;
  exit(0);
}

/* Nearly all of the time some page is being filled, or written. */
static void write_until_ended(int rank) {
  static char data[64 << 10];
  const struct itimerval soon = {{0, 0}, {0, 30000 + 7000 * rank}};
  signal(SIGALRM, &end_here);
  CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0);
  for (MPI_Offset i = 0;; ++i)
    CHECK(MPI_File_write_at(fh, (i % 4096) * (MPI_Offset)sizeof data + 100, data, sizeof data,
                            MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

/* The launcher kills who has not ended when another has, and drops what was said last. */
static void stay_a_while(void) { usleep(300000); }

static void close_until_ended(int rank) {
  const struct itimerval soon = {{0, 0}, {0, 300000}};
  if (rank > 0) pause();
  signal(SIGALRM, &end_here);
  CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0);
  MPI_File_close(&fh);
}

/* This rank's i-th piece is in the file. */
static void expect_piece(const char* path, int i) {
  int rank, ranks;
  char got[BYTES];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  CHECK(read_back(path, (long)BYTES * (i * ranks + rank), got, BYTES) == BYTES);
  for (int k = 0; k < BYTES; ++k) CHECK(got[k] == 'a' + rank);
}

/* Nobody may come back to what waits there, so nothing does. */
static int write_late(MPI_Comm comm, int key, void* path, void* extra) {
  (void)comm, (void)key, (void)extra;
  write_last();
  expect_piece(path, PIECES);
  return MPI_SUCCESS;
}

static int begin_late(MPI_Comm comm, int key, void* path, void* extra) {
  (void)comm, (void)key, (void)extra;
  write_by_turns(path);
  for (int i = 0; i < PIECES; ++i) expect_piece(path, i);
  return MPI_File_close(&fh);
}

enum { LARGE = 256 << 10 };

/* Into a page that another rank's node has. */
static long long write_for_another(int rank, const char* path) {
  static char data[LARGE];
  memset(data, 'x', sizeof data);
  CHECK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL,
                      &fh) == MPI_SUCCESS);
  if (rank != 0) return 0;
  CHECK(MPI_File_write_at(fh, 1 << 20, data, LARGE, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  return LARGE;
}

/* The others are in MPI_Finalize by then, and what is asked about is in the file. */
static void ask_late(const char* path, long long written) {
  static char got[LARGE];
  MPI_Offset size = 0;
  sleep(1);
  CHECK(MPI_File_get_size(fh, &size) == MPI_SUCCESS);
  CHECK(size == (1 << 20) + written);
  CHECK(read_back(path, 1 << 20, got, LARGE) == LARGE);
  for (int i = 0; i < LARGE; ++i) CHECK(got[i] == 'x');
}

static long long write_own(int rank, const char* path) {
  char own[4096];
  snprintf(own, sizeof own, "%s.%d", path, rank);
  const long long n = write_one(MPI_COMM_SELF, own);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  return n;
}

static void close_in_finalize(MPI_Comm_delete_attr_function* callback, char* path) {
  int key;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, callback, &key, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, path);
}

int main(int argc, char** argv) {
  CHECK(argc == 3);
  const char* what = argv[1];
  const int asks_late = strcmp(what, "asks-late") == 0;
  int rank, level;
  if (strcmp(what, "exits-later") == 0) atexit(&write_last); /* so it comes after Penstock's */
  if (strcmp(what, "exits-in-close") == 0) atexit(&stay_a_while);
  MPI_Init_thread(&argc, &argv, asks_late ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
  long long mine = 0, sum = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (strcmp(what, "cleared") == 0 && rank > 0) clearenv();
  if (strcmp(what, "self") == 0 || strcmp(what, "cleared") == 0) {
    mine = write_own(rank, argv[2]);
  } else if (strcmp(what, "left-alone") == 0 || strncmp(what, "exits", 5) == 0 ||
             strcmp(what, "writes-late") == 0) {
    mine = write_by_turns(argv[2]);
    if (strcmp(what, "exits-later") == 0) mine += BYTES;
  } else if (strcmp(what, "left-behind") == 0) {
    mine = write_behind(rank, argv[2]);
  } else if (strcmp(what, "begins-late") == 0) {
    mine = PIECES * BYTES;
    close_in_finalize(&begin_late, argv[2]);
  } else if (asks_late) {
    mine = write_for_another(rank, argv[2]);
  } else if (strcmp(what, "nothing") != 0) {
    mine = write_one(MPI_COMM_WORLD, argv[2]);
  }
  if (strcmp(what, "late") == 0) close_in_finalize(&close_late, argv[2]);
  if (strcmp(what, "writes-late") == 0) close_in_finalize(&write_late, argv[2]);
  if (strcmp(what, "damaged") == 0) close_in_finalize(&damage_and_close, argv[2]);
  MPI_Reduce(&mine, &sum, 1, MPI_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("written %lld\n", sum);
  fflush(stdout);
  if (asks_late && rank == 0) ask_late(argv[2], sum);
  if (strcmp(what, "killed") == 0) {
    usleep(300000); /* launchers that learn of a death first drop what was said last */
    raise(SIGKILL);
  }
  if (strcmp(what, "exits-in-call") == 0) write_until_ended(rank);
  if (strcmp(what, "exits-in-close") == 0) close_until_ended(rank);
  if (strncmp(what, "exits", 5) == 0) {
    usleep(300000); /* likewise; and the others are here by then */
    exit(0);
  }
  MPI_Finalize();
  return 0;
}
