/* A thread of rank 0 sets the view of one handle with all, and waits for them, while its other one
 * opens the same file once more at its end with all, on ranks of their own; rank 1 does the one
 * after the other, in the other order: `appended FILE`, any number of ranks. */
#include <time.h>

#include "threaded_job.h"

static MPI_File first, second;

static void wait_ms(long ms) { nanosleep(&(struct timespec){0, ms * 1000000}, NULL); }

static void* set_view(void* unused) {
  (void)unused;
  CHECK(MPI_File_set_view(first, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL) == MPI_SUCCESS);
  return NULL;
}

static void open_at_end(MPI_Comm comm) {
  CHECK(MPI_File_open(comm, path, MPI_MODE_WRONLY | MPI_MODE_APPEND, MPI_INFO_NULL, &second) ==
        MPI_SUCCESS);
}

int main(int argc, char** argv) {
  MPI_Comm beside;
  int got = -1;
  pthread_t thread;
  start_threaded_job(argc, argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &beside);
  first = open_as(MPI_MODE_CREATE | MPI_MODE_WRONLY);
  if (rank == 0) {
    CHECK(pthread_create(&thread, NULL, set_view, NULL) == 0);
    wait_ms(100);
    open_at_end(beside);
    CHECK(pthread_join(thread, NULL) == 0);
  } else {
    wait_ms(300);
    open_at_end(beside);
    set_view(NULL);
  }
  CHECK(MPI_File_write_at_all(first, rank, &rank, 1, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  CHECK(MPI_File_close(&second) == MPI_SUCCESS);
  CHECK(MPI_File_close(&first) == MPI_SUCCESS);
  CHECK(read_back(path, rank * (long)sizeof rank, &got, sizeof got) == (long)sizeof got);
  CHECK(got == rank);
  MPI_Comm_free(&beside);
  tell("written", (long long)sizeof rank);
  MPI_Finalize();
  return 0;
}
