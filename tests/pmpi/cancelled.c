/* A thread of each rank that is cancelled while it writes ends between two calls, and the file is
 * as it was left: `cancelled FILE`, any number of ranks. Prints the bytes that all ranks wrote. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "job.h"

enum { TURNS = 20, BYTES = 4096 };

static MPI_File fh;
static volatile long long calls;

/* On and on over the same places, which are in the file when a call returns. */
static void* write_for_ever(void* nothing) {
  char data[BYTES];
  memset(data, 'a' + rank, sizeof data);
  for (;;) {
    const MPI_Offset at = (MPI_Offset)BYTES * (rank + ranks * (calls % 64));
    CHECK(MPI_File_write_at(fh, at, data, BYTES, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    ++calls;
    pthread_testcancel();
  }
  return nothing;
}

static void one_turn(int turn) {
  pthread_t thread;
  void* result = NULL;
  const long long before = calls;
  CHECK(pthread_create(&thread, NULL, &write_for_ever, NULL) == 0);
  while (calls < before + turn) usleep(50);
  CHECK(pthread_cancel(thread) == 0);
  CHECK(pthread_join(thread, &result) == 0);
  CHECK(result == PTHREAD_CANCELED);
}

/* Every place that a call has returned of. */
static void check_places(void) {
  char got[BYTES];
  for (int place = 0; place < 64 && place < calls; ++place) {
    CHECK(read_back(path, (long)BYTES * (rank + ranks * place), got, BYTES) == BYTES);
    for (int i = 0; i < BYTES; ++i) CHECK(got[i] == 'a' + rank);
  }
}

int main(int argc, char** argv) {
  int granted;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &granted);
  CHECK(granted >= MPI_THREAD_SERIALIZED);
  know_job(argc, argv);
  CHECK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &fh) ==
        MPI_SUCCESS);
  for (int turn = 0; turn < TURNS; ++turn) one_turn(turn);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  check_places();
  tell("written", calls * BYTES);
  MPI_Finalize();
  return 0;
}
