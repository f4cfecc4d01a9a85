/* Three threads of each rank open, write, close and read back files of their own, two at a time,
 * each thread with its own duplicate of the ranks: `threads FILE`, any number of ranks, of a
 * library that keeps MPI_THREAD_MULTIPLE where files are opened. Prints the bytes that all ranks
 * wrote. */
#include "threaded_job.h"

enum { kTurns = 40, kNames = 3, kInts = 256 };
static const MPI_Offset kBytes = kInts * sizeof(int);

struct Worker {
  MPI_Comm comm;
  int number;
  long long written;
};

static MPI_File open_by(MPI_Comm comm, const char* name, int mode) {
  MPI_File fh;
  CHECK(MPI_File_open(comm, name, mode, MPI_INFO_NULL, &fh) == MPI_SUCCESS);
  return fh;
}

static int value_of(int of_rank, int turn, int i) { return of_rank * 100000 + turn * 1000 + i; }

static void write_mine(MPI_File fh, int turn) {
  int data[kInts];
  MPI_Status status;
  for (int i = 0; i < kInts; ++i) data[i] = value_of(rank, turn, i);
  int (*const write)(MPI_File, MPI_Offset, const void*, int, MPI_Datatype, MPI_Status*) =
      turn % 2 == 0 ? MPI_File_write_at : MPI_File_write_at_all;
  CHECK(write(fh, rank * kBytes, data, kInts, MPI_INT, &status) == MPI_SUCCESS);
  CHECK(bytes_of(&status) == kBytes);
}

static void read_neighbours(MPI_File fh, int turn) {
  int data[kInts];
  const int other = (rank + 1) % ranks;
  CHECK(MPI_File_read_at(fh, other * kBytes, data, kInts, MPI_INT, MPI_STATUS_IGNORE) ==
        MPI_SUCCESS);
  for (int i = 0; i < kInts; ++i) CHECK(data[i] == value_of(other, turn, i));
}

static void one_turn(struct Worker* self, int turn) {
  char name[4096], second[4096];
  snprintf(name, sizeof name, "%s.%d-%d", path, self->number, turn % kNames);
  snprintf(second, sizeof second, "%s.%d-second", path, self->number);
  const int two = turn % 4 == 0; /* files open at once */
  MPI_File other = MPI_FILE_NULL;
  MPI_File fh = open_by(self->comm, name, MPI_MODE_CREATE | MPI_MODE_WRONLY);
  if (two) other = open_by(self->comm, second, MPI_MODE_CREATE | MPI_MODE_WRONLY);
  write_mine(fh, turn);
  if (two) CHECK(MPI_File_close(&other) == MPI_SUCCESS);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  self->written += kBytes;
  fh = open_by(self->comm, name, MPI_MODE_RDONLY);
  read_neighbours(fh, turn);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  MPI_Barrier(self->comm); /* before a neighbour writes it again */
}

static void* work(void* worker) {
  for (int turn = 0; turn < kTurns; ++turn) one_turn(worker, turn);
  return NULL;
}

int main(int argc, char** argv) {
  struct Worker workers[kThreads];
  long long written = 0;
  start_threaded_job(argc, argv);
  for (int i = 0; i < kThreads; ++i) {
    workers[i] = (struct Worker){.number = i};
    MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].comm);
  }
  run_threads(&work, workers, sizeof workers[0]);
  for (int i = 0; i < kThreads; ++i) {
    MPI_Comm_free(&workers[i].comm);
    written += workers[i].written;
  }
  tell("written", written);
  MPI_Finalize();
  return 0;
}
