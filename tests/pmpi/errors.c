/* Errors as a program meets them: `errors FILE`, any number of ranks. Wrong arguments, a file size
 * limit that only some ranks hit, the program's own error handler, no file at all, no communicator.
 */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "job.h"

static int handled, handled_class;
static long long written;

static void handler(MPI_File* fh, int* code, ...) {
  char byte = 'h';
  ++handled;
  handled_class = class_of(*code);
  /* A handler may use its file: this write is the program's own. */
  if (*fh != MPI_FILE_NULL) {
    CHECK(MPI_File_write_at(*fh, 1000 + rank, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE) ==
          MPI_SUCCESS);
    ++written;
  }
}

/* The program has used up the library's communicators when its first derived type is looked at, and
 * when the ranks of a node are to have one of their own. */
static void no_communicator_left(void) {
  enum { kMost = 4000 };
  static MPI_Comm all[kMost];
  static char data[1 << 16];
  const char a[8] = "abcdefg";
  int n = 0;
  MPI_Datatype type, four, tile;
  MPI_File fh = open_fresh();
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  while (n < kMost && MPI_Comm_dup(MPI_COMM_SELF, &all[n]) == MPI_SUCCESS) ++n;
  MPI_Type_vector(2, 2, 4, MPI_BYTE, &type);
  MPI_Type_commit(&type);
  MPI_Type_vector(1, 4, 4, MPI_BYTE, &four);
  MPI_Type_create_resized(four, 0, 4 * ranks, &tile);
  MPI_Type_free(&four);
  MPI_Type_commit(&tile);
  for (int again = 0; again < 2; ++again) {
    CHECK(MPI_File_write_at(fh, 4 * rank, a, 1, type, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(MPI_File_set_view(fh, 4 * rank, MPI_BYTE, tile, "native", MPI_INFO_NULL) == MPI_SUCCESS);
    CHECK(MPI_File_write_at_all(fh, 0, data, sizeof data, MPI_BYTE, MPI_STATUS_IGNORE) ==
          MPI_SUCCESS);
    written += 4 + sizeof data;
    while (n > 0) MPI_Comm_free(&all[--n]);
  }
  MPI_Type_free(&type);
  MPI_Type_free(&tile);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
}

/* A call with a type that may not be used moves no pointer. */
static void leaves_pointer(MPI_File fh, MPI_Datatype uncommitted) {
  int a[2] = {0, 0};
  MPI_Offset at = -1;
  CHECK(MPI_File_seek(fh, 8, MPI_SEEK_SET) == MPI_SUCCESS);
  CHECK(class_of(MPI_File_write(fh, a, 1, uncommitted, MPI_STATUS_IGNORE)) == MPI_ERR_TYPE);
  CHECK(class_of(MPI_File_write_all(fh, a, 1, uncommitted, MPI_STATUS_IGNORE)) == MPI_ERR_TYPE);
  CHECK(class_of(MPI_File_read_all(fh, a, 1, uncommitted, MPI_STATUS_IGNORE)) == MPI_ERR_TYPE);
  CHECK(MPI_File_get_position(fh, &at) == MPI_SUCCESS);
  CHECK(at == 8);
}

static void wrong_arguments(void) {
  int a[4] = {0, 0, 0, 0}, n = -1;
  MPI_Status status;
  MPI_Datatype uncommitted;
  MPI_File fh = open_fresh();
  MPI_Type_contiguous(2, MPI_INT, &uncommitted);
  CHECK(class_of(MPI_File_write_at(fh, 0, a, 1, uncommitted, MPI_STATUS_IGNORE)) == MPI_ERR_TYPE);
  leaves_pointer(fh, uncommitted);
  MPI_Type_free(&uncommitted);
  CHECK(class_of(MPI_File_write_at(fh, 0, a, -1, MPI_INT, MPI_STATUS_IGNORE)) == MPI_ERR_COUNT);
  CHECK(class_of(MPI_File_write_at(fh, 0, a, 1, MPI_DATATYPE_NULL, MPI_STATUS_IGNORE)) ==
        MPI_ERR_TYPE);
  CHECK(class_of(MPI_File_write_at(fh, -1, a, 1, MPI_INT, MPI_STATUS_IGNORE)) == MPI_ERR_ARG);
  CHECK(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL) == MPI_SUCCESS);
  CHECK(class_of(MPI_File_write_at(fh, 0, a, 3, MPI_BYTE, MPI_STATUS_IGNORE)) == MPI_ERR_IO);
  /* One rank is wrong: all are told, nobody waits, and what the others wrote is counted. */
  const int class =
      class_of(MPI_File_write_at_all(fh, rank, a, rank == 0 ? -1 : 1, MPI_INT, &status));
  MPI_Get_elements(&status, MPI_BYTE, &n);
  written += n;
  CHECK(class == (rank == 0 ? MPI_ERR_COUNT : MPI_ERR_ARG));
  CHECK(MPI_File_write_at_all(fh, rank, a, 1, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  written += 4;
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
}

/* Hints that are none any more are the file's error, and no reason to end the job. MPICH looks into
 * what was freed, with Penstock and without. */
static void freed_hints(void) {
#ifdef OPEN_MPI
  MPI_Info info, freed;
  MPI_File fh = open_fresh();
  MPI_Info_create(&info);
  freed = info;
  MPI_Info_free(&info);
  CHECK(class_of(MPI_File_set_info(fh, freed)) == MPI_ERR_INFO);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
#endif
}

/* Of a split write wrong arguments are told where it ends, by the same words. */
static void wrong_split(MPI_File fh, int count, MPI_Datatype type, int class) {
  int a[4] = {0, 0, 0, 0};
  CHECK(MPI_File_write_at_all_begin(fh, rank, a, count, type) == MPI_SUCCESS);
  CHECK(class_of(MPI_File_write_at_all_end(fh, a, MPI_STATUS_IGNORE)) == class);
}

static void wrong_splits(void) {
  MPI_Datatype uncommitted;
  MPI_File fh = open_fresh();
  CHECK(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL) == MPI_SUCCESS);
  MPI_Type_contiguous(2, MPI_INT, &uncommitted);
  wrong_split(fh, -1, MPI_INT, MPI_ERR_COUNT);
  wrong_split(fh, 1, MPI_DATATYPE_NULL, MPI_ERR_TYPE);
  wrong_split(fh, 1, uncommitted, MPI_ERR_TYPE);
  wrong_split(fh, 3, MPI_BYTE, MPI_ERR_IO);
  wrong_split(fh, rank == 0 ? -1 : 0, MPI_INT, rank == 0 ? MPI_ERR_COUNT : MPI_ERR_ARG);
  wrong_split(fh, 0, MPI_INT, MPI_SUCCESS);
  MPI_Type_free(&uncommitted);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
}

/* Another rank's arguments are wrong: what this one's status counts it has read. */
static void bytes_that_count_are_there(MPI_File fh, MPI_Datatype type) {
  enum { mib = 1 << 20 };
  static char memory[mib];
  MPI_Status status;
  int n = 0;
  memset(memory, 'x', mib); /* the file has zeros */
  CHECK(MPI_File_read_at_all(fh, 0, memory, rank == 0 ? 1 : -1, type, &status) !=
        (ranks > 1 ? MPI_SUCCESS : -1));
  MPI_Get_elements(&status, MPI_BYTE, &n);
  if (rank == 0) CHECK(n == 0 || (n == mib && memory[0] == 0 && memory[mib - 1] == 0));
}

/* So deep that the library has to pack what is written, of one copy up to 2 GiB. Nothing of it,
 * on some rank or on all, is nothing to pack. */
static void deep_type(void) {
  enum { mib = 1 << 20, deep = 300, beyond = 2100 };
  static char data[mib];
  MPI_Datatype type, next;
  MPI_Status status;
  int n = -1;
  MPI_File fh = open_fresh();
  MPI_Type_contiguous(mib, MPI_BYTE, &type);
  for (int i = 0; i < deep; ++i) {
    MPI_Type_contiguous(1, type, &next);
    MPI_Type_free(&type);
    type = next;
  }
  MPI_Type_commit(&type);
  CHECK(MPI_File_write_at(fh, 0, data, 0, type, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  CHECK(MPI_File_write_at_all(fh, 0, data, rank == 0 ? 1 : 0, type, &status) == MPI_SUCCESS);
  MPI_Get_elements(&status, MPI_BYTE, &n);
  CHECK(n == (rank == 0 ? mib : 0));
  written += n;
  CHECK(MPI_File_read_at_all(fh, 0, data, rank == 0 ? 0 : 1, type, MPI_STATUS_IGNORE) ==
        MPI_SUCCESS);
  bytes_that_count_are_there(fh, type);
  MPI_Type_contiguous(beyond, type, &next); /* more than the library can pack of one type */
  MPI_Type_commit(&next);
  CHECK(class_of(MPI_File_write_at_all(fh, 0, data, rank == 0 ? 1 : 0, next, MPI_STATUS_IGNORE)) ==
        (rank == 0 ? MPI_ERR_UNSUPPORTED_OPERATION : MPI_ERR_ARG));
  MPI_Type_free(&next);
  MPI_Type_free(&type);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
}

/* A variable that nobody made a type of. Its error is the file's, not a communicator's. */
static void no_type(void) {
  static MPI_Datatype none;
  int a[4] = {0, 0, 0, 0};
  MPI_Status status;
  MPI_File fh = open_fresh();
  CHECK(class_of(MPI_File_write_at(fh, 0, a, 1, none, &status)) == MPI_ERR_TYPE);
  CHECK(class_of(MPI_File_write_at(fh, 0, a, 1, none, &status)) == MPI_ERR_TYPE);
  CHECK(class_of(MPI_File_write_at_all(fh, 0, a, 1, none, &status)) == MPI_ERR_TYPE);
  CHECK(class_of(MPI_File_read_at_all(fh, 0, a, 1, none, &status)) == MPI_ERR_TYPE);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
}

static void own_handler(void) {
  int a[4] = {0, 0, 0, 0};
  MPI_Errhandler mine;
  MPI_File fh = open_fresh();
  CHECK(MPI_File_create_errhandler(&handler, &mine) == MPI_SUCCESS);
  CHECK(MPI_File_set_errhandler(fh, mine) == MPI_SUCCESS);
  handled = 0;
  MPI_File_write_at(fh, 0, a, -1, MPI_INT, MPI_STATUS_IGNORE);
  CHECK(handled == 1 && handled_class == MPI_ERR_COUNT);
  MPI_File_write_at_all(fh, 0, a, rank == 0 ? -1 : 0, MPI_INT, MPI_STATUS_IGNORE);
  CHECK(handled == 2 && handled_class == (rank == 0 ? MPI_ERR_COUNT : MPI_ERR_ARG));
  MPI_File_call_errhandler(fh, MPI_ERR_QUOTA);
  CHECK(handled == 3 && handled_class == MPI_ERR_QUOTA);
  /* Raised by the library itself. */
  MPI_File_read_at(fh, 0, a, 1, MPI_DATATYPE_NULL, MPI_STATUS_IGNORE);
  CHECK(handled == 4 && handled_class == MPI_ERR_TYPE);
  MPI_Errhandler_free(&mine);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
}

static MPI_File to_sync;
static int synced_class;

static void syncing_handler(MPI_File* fh, int* code, ...) {
  (void)fh, (void)code;
  MPI_Error_class(MPI_File_sync(to_sync), &synced_class);
}

/* What a handler calls is the program's, whoever has entered the handler: what was accepted is in
 * the file when it has synced. */
static void handler_that_syncs(void) {
  const int value = rank + 1;
  int got = 0;
  MPI_Errhandler mine;
  to_sync = open_fresh();
  CHECK(MPI_File_create_errhandler(&syncing_handler, &mine) == MPI_SUCCESS);
  CHECK(MPI_File_set_errhandler(to_sync, mine) == MPI_SUCCESS);
  CHECK(MPI_File_write_at(to_sync, 4 * rank, &value, 1, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  written += 4;
  synced_class = -1;
  MPI_File_seek(to_sync, -1, MPI_SEEK_SET); /* raised by the library itself */
  CHECK(synced_class == MPI_SUCCESS);
  const int fd = open(path, O_RDONLY);
  CHECK(pread(fd, &got, 4, 4 * rank) == 4 && got == value);
  close(fd);
  MPI_Errhandler_free(&mine);
  CHECK(MPI_File_close(&to_sync) == MPI_SUCCESS);
}

/* Nobody may write beyond 64 KiB. Each rank wants 32 KiB of its own. */
static void file_size_limit(void) {
  enum { mine = 32 << 10, limit = 64 << 10 };
  static char data[mine], got[mine];
  struct rlimit old, small;
  MPI_Status status;
  int n = -1;
  MPI_File fh = open_fresh();
  memset(data, 'a' + rank, mine);
  signal(SIGXFSZ, SIG_IGN);
  getrlimit(RLIMIT_FSIZE, &old);
  small = old;
  small.rlim_cur = limit;
  setrlimit(RLIMIT_FSIZE, &small);
  const int class =
      class_of(MPI_File_write_at_all(fh, (MPI_Offset)rank * mine, data, mine, MPI_BYTE, &status));
  MPI_Get_elements(&status, MPI_BYTE, &n);
  CHECK(class == (ranks > 2 ? MPI_ERR_IO : MPI_SUCCESS));
  CHECK(n >= 0 && n <= mine && (class != MPI_SUCCESS || n == mine));
  CHECK(n == 0 || read_back(path, (long)rank * mine, got, n) == n);
  CHECK(memcmp(got, data, (size_t)n) == 0);
  setrlimit(RLIMIT_FSIZE, &old);
  written += n;
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
}

/* What a non-blocking write lost is told by the next call, be that a view of many blocks, where
 * reads are the library's: it is given the view then after all. Without Penstock the write itself
 * fails. */
static void loss_before_a_large_view(void) {
  enum { blocks = 2000, limit = 64 << 10 };
  const char byte = 'x';
  struct rlimit old, small;
  MPI_File fh;
  MPI_Info info;
  MPI_Request request;
  MPI_Datatype tile;
  if (getenv("PENSTOCK_ALL_RANKS") == NULL) return;
  MPI_Info_create(&info);
  MPI_Info_set(info, "penstock_read", "pass");
  CHECK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &fh) ==
        MPI_SUCCESS);
  MPI_Info_free(&info);
  MPI_Type_vector(blocks, 1, 2, MPI_BYTE, &tile);
  MPI_Type_commit(&tile);
  getrlimit(RLIMIT_FSIZE, &old);
  small = old;
  small.rlim_cur = limit;
  setrlimit(RLIMIT_FSIZE, &small);
  CHECK(MPI_File_iwrite_at(fh, limit + rank, &byte, 1, MPI_BYTE, &request) == MPI_SUCCESS);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(class_of(MPI_File_set_view(fh, rank, MPI_BYTE, tile, "native", MPI_INFO_NULL)) ==
        MPI_ERR_IO);
  setrlimit(RLIMIT_FSIZE, &old);
  CHECK(MPI_File_write_at(fh, rank, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  ++written;
  MPI_Type_free(&tile);
  CHECK(class_of(MPI_File_close(&fh)) == MPI_ERR_IO);
}

/* A handler that comes back and changes nothing. What its calls return is the library's own affair;
 * where the file pointer is, and what other ranks are told, is not. */
static void takes_it(MPI_File* fh, int* code, ...) { (void)fh, (void)code, ++handled; }

static void refused_calls_leave_the_pointer(void) {
  const char a[4] = {'a', 'b', 'c', 'd'};
  char got[8] = "";
  MPI_Status status;
  MPI_Offset at = -1;
  MPI_Errhandler errhandler;
  MPI_File fh = open_as(MPI_MODE_CREATE | MPI_MODE_WRONLY);
  MPI_File_create_errhandler(&takes_it, &errhandler);
  MPI_File_set_errhandler(fh, errhandler);
  handled = 0;
  CHECK(MPI_File_set_view(fh, 8 * rank, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL) ==
        MPI_SUCCESS);
  CHECK(MPI_File_write(fh, a, 4, MPI_BYTE, &status) == MPI_SUCCESS);
  (void)MPI_File_read(fh, got, 4, MPI_BYTE, &status);
  (void)MPI_File_seek(fh, -1, MPI_SEEK_SET);
  CHECK(MPI_File_get_position(fh, &at) == MPI_SUCCESS);
  CHECK(at == 4);
  CHECK(MPI_File_write(fh, a, 4, MPI_BYTE, &status) == MPI_SUCCESS);
  CHECK(handled == 2);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  CHECK(read_back(path, 8 * rank, got, 8) == 8);
  CHECK(memcmp(got, "abcdabcd", 8) == 0);
  MPI_Errhandler_free(&errhandler);
  written += 8;
}

/* Nothing is kept of a file whose open has failed, whatever the handler said. */
static void refused_open(void) {
  MPI_File fh;
  MPI_Errhandler errhandler;
  MPI_File_create_errhandler(&takes_it, &errhandler);
  MPI_File_set_errhandler(MPI_FILE_NULL, errhandler);
  handled = 0;
  (void)MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY,
                      MPI_INFO_NULL, &fh);
  CHECK(handled == 1);
  MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
  MPI_Errhandler_free(&errhandler);
}

/* What has no place for its answer is refused before a byte is taken. */
static void no_place(void) {
#ifdef OPEN_MPI /* others take what they are given */
  const char byte = 1;
  MPI_Offset before = 0, after = 0;
  MPI_File fh = open_fresh();
  CHECK(MPI_File_get_size(fh, &before) == MPI_SUCCESS);
  CHECK(MPI_File_iwrite_at(fh, 1000, &byte, 1, MPI_BYTE, NULL) != MPI_SUCCESS);
  CHECK(MPI_File_get_size(fh, &after) == MPI_SUCCESS && after == before);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
#endif
}

static void no_file(void) {
  MPI_File fh = MPI_FILE_NULL;
  MPI_Offset size = 0;
  MPI_Errhandler errhandler;
  char byte = 0;
  CHECK(MPI_File_get_errhandler(MPI_FILE_NULL, &errhandler) == MPI_SUCCESS);
  CHECK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN) == MPI_SUCCESS);
  CHECK(MPI_File_open(MPI_COMM_WORLD, "/nonexistent/file", MPI_MODE_RDWR, MPI_INFO_NULL, &fh) !=
        MPI_SUCCESS);
#ifndef MPI_ABI /* MPICH 5.0's library of the standard ABI crashes in these by itself */
  fh = MPI_FILE_NULL;
  CHECK(MPI_File_get_size(fh, &size) != MPI_SUCCESS);
  CHECK(MPI_File_write_at(fh, 0, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS);
  CHECK(MPI_File_sync(fh) != MPI_SUCCESS);
  CHECK(MPI_File_close(&fh) != MPI_SUCCESS);
#else
  (void)size, (void)byte;
#endif
}

int main(int argc, char** argv) {
  start_job(argc, argv);
  no_communicator_left();
  wrong_arguments();
  freed_hints();
  wrong_splits();
  deep_type();
  no_type();
  own_handler();
  handler_that_syncs();
  file_size_limit();
  loss_before_a_large_view();
  refused_calls_leave_the_pointer();
  refused_open();
  no_place();
  no_file();
  tell("written", written);
  MPI_Finalize();
  return 0;
}
