/* A thread of the last rank waits inside the MPI library for rank 0, in MPI_File_read_ordered,
 * while the main thread uses the error handler of the same file: `aside FILE`, two ranks, of a
 * library that keeps MPI_THREAD_MULTIPLE where files are read. All is as when no thread is inside.
 * Some of these calls wait in some library for the thread that is inside, so each has a read of its
 * own. Prints the bytes that all ranks wrote. `aside fatal FILE`: a write that fails then, with
 * MPI_ERRORS_ARE_FATAL, ends the job. */
#include <setjmp.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "threaded_job.h"

enum { kBytes = 4, kMayBegin = 17 };

static MPI_File fh;
static MPI_Errhandler first, second, replaces, leaves;
static int handled_by_first, handled_by_second, replaced, left;
static jmp_buf back;

static void first_handler(MPI_File* file, int* code, ...) {
  (void)file, (void)code, ++handled_by_first;
}

static void second_handler(MPI_File* file, int* code, ...) {
  (void)file, (void)code, ++handled_by_second;
}

static void replacing_handler(MPI_File* file, int* code, ...) {
  (void)code, ++replaced;
  CHECK(MPI_File_set_errhandler(*file, second) == MPI_SUCCESS);
}

static void leaving_handler(MPI_File* file, int* code, ...) {
  (void)file, (void)code, ++left;
  longjmp(back, 1);
}

static void set_handler(MPI_Errhandler handler) {
  CHECK(MPI_File_set_errhandler(fh, handler) == MPI_SUCCESS);
}

static int has_handler(MPI_Errhandler handler) {
  MPI_Errhandler found;
  CHECK(MPI_File_get_errhandler(fh, &found) == MPI_SUCCESS);
  const int same = found == handler;
  if (found != MPI_ERRORS_RETURN) MPI_Errhandler_free(&found);
  return same;
}

/* Of a wrong count, which no library moves a byte for. */
static void fail_to_write(void) {
  const char byte = 'x';
  (void)MPI_File_write_at(fh, 0, &byte, -1, MPI_CHAR, MPI_STATUS_IGNORE);
}

/* By the library itself. */
static void fail_to_read(void) {
  char byte;
  (void)MPI_File_read_at(fh, 0, &byte, 1, MPI_DATATYPE_NULL, MPI_STATUS_IGNORE);
}

static void is_shown(void) { CHECK(has_handler(first)); }

static void is_called(void) {
  fail_to_write();
  CHECK(handled_by_first == 1);
}

static void is_called_of_the_library(void) {
  fail_to_read();
  CHECK(handled_by_first == 1);
}

static void is_called_by_name(void) {
  CHECK(MPI_File_call_errhandler(fh, MPI_ERR_QUOTA) == MPI_SUCCESS);
  CHECK(handled_by_first == 1);
}

static void another_is_set(void) {
  set_handler(second);
  fail_to_write();
  CHECK(has_handler(second));
  CHECK(handled_by_first == 0 && handled_by_second == 1);
}

static void none_is_set(void) {
  set_handler(MPI_ERRORS_RETURN);
  fail_to_write();
  CHECK(has_handler(MPI_ERRORS_RETURN));
  CHECK(handled_by_first == 0);
}

static void sets_another(void) {
  fail_to_write();
  fail_to_write();
  CHECK(replaced == 1 && handled_by_second == 1);
}

/* Of MPICH and Intel's library no handler may leave: they call it with their lock held. */
static void leaves_by_jump(void) {
#ifdef OPEN_MPI
  for (volatile int turn = 0; turn < 2; ++turn) {
    if (setjmp(back) == 0) fail_to_write();
    if (setjmp(back) == 0) fail_to_read();
  }
  CHECK(left == 4);
#endif
}

struct Use {
  void (*use)(void);
  MPI_Errhandler before, after;
};

static void use_alone(const struct Use* use) {
  set_handler(use->before);
  handled_by_first = handled_by_second = replaced = left = 0;
  use->use();
  CHECK(has_handler(use->after));
  set_handler(use->before);
  handled_by_first = handled_by_second = replaced = left = 0;
}

static atomic_int begins;

static void* read_in_order(void* unused) {
  (void)unused;
  char got[kBytes], expected[kBytes];
  memset(expected, 'a' + rank, kBytes);
  begins = 1;
  CHECK(MPI_File_read_ordered(fh, got, kBytes, MPI_CHAR, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  CHECK(memcmp(got, expected, kBytes) == 0);
  return NULL;
}

/* Where the wait is too short the main thread is alone with the file, and all holds as well. */
static pthread_t begin_to_read(void) {
  pthread_t thread;
  begins = 0;
  CHECK(pthread_create(&thread, NULL, &read_in_order, NULL) == 0);
  while (!begins) usleep(1000);
  usleep(200000);
  return thread;
}

/* Rank 0 comes to the read some time after the last rank has sent for it. */
static void read_when_sent_for(void) {
  MPI_Recv(NULL, 0, MPI_CHAR, ranks - 1, kMayBegin, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  usleep(200000);
  (void)read_in_order(NULL);
}

static void use_while_reading(const struct Use* use) {
  use_alone(use);
  const pthread_t reader = begin_to_read();
  MPI_Send(NULL, 0, MPI_CHAR, 0, kMayBegin, MPI_COMM_WORLD);
  use->use();
  CHECK(pthread_join(reader, NULL) == 0);
  CHECK(has_handler(use->after));
  set_handler(MPI_ERRORS_RETURN);
}

static void one_turn(const struct Use* use) {
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(MPI_File_seek_shared(fh, 0, MPI_SEEK_SET) == MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == ranks - 1)
    use_while_reading(use);
  else
    read_when_sent_for();
}

static void all_turns(void) {
  const struct Use uses[] = {
      {&is_shown, first, first},
      {&is_called, first, first},
      {&is_called_of_the_library, first, first},
      {&is_called_by_name, first, first},
      {&another_is_set, first, second},
      {&another_is_set, MPI_ERRORS_RETURN, second},
      {&none_is_set, first, MPI_ERRORS_RETURN},
      {&sets_another, replaces, second},
      {&leaves_by_jump, leaves, leaves},
  };
  for (size_t i = 0; i < sizeof uses / sizeof *uses; ++i) one_turn(&uses[i]);
}

static void die_while_reading(void) {
  if (rank == ranks - 1) {
    set_handler(MPI_ERRORS_ARE_FATAL);
    const pthread_t reader = begin_to_read();
    fail_to_write();
    MPI_Send(NULL, 0, MPI_CHAR, 0, kMayBegin, MPI_COMM_WORLD);
    CHECK(pthread_join(reader, NULL) == 0);
  } else {
    read_when_sent_for();
  }
}

static void make_handlers(void) {
  MPI_File_create_errhandler(&first_handler, &first);
  MPI_File_create_errhandler(&second_handler, &second);
  MPI_File_create_errhandler(&replacing_handler, &replaces);
  MPI_File_create_errhandler(&leaving_handler, &leaves);
}

static void free_handlers(void) {
  MPI_Errhandler* const all[] = {&first, &second, &replaces, &leaves};
  for (int i = 0; i < 4; ++i) MPI_Errhandler_free(all[i]);
}

int main(int argc, char** argv) {
  const int fatal = argc == 3 && strcmp(argv[1], "fatal") == 0;
  char mine[kBytes];
  start_threaded_job(argc - fatal, argv + fatal);
  memset(mine, 'a' + rank, kBytes);
  fh = open_fresh();
  CHECK(MPI_File_write_at_all(fh, rank * kBytes, mine, kBytes, MPI_CHAR, MPI_STATUS_IGNORE) ==
        MPI_SUCCESS);
  CHECK(MPI_File_sync(fh) == MPI_SUCCESS);
  tell("written", kBytes);
  fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  make_handlers();
  if (fatal) {
    die_while_reading();
  } else {
    all_turns();
  }
  free_handlers();
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  MPI_Finalize();
  return 0;
}
