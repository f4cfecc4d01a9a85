/* Three threads of each rank open, write, close and read back files of their own, two at a time,
 * each thread with its own duplicate of the ranks; then they open one file at once: `threads FILE`,
 * any number of ranks, of a library that keeps MPI_THREAD_MULTIPLE where files are opened. Prints
 * the bytes that all ranks wrote. */
#include "threaded_job.h"

enum { kTurns = 40, kNames = 3, kInts = 256 };
static const MPI_Offset kBytes = kInts * sizeof(int);

struct Worker {
  MPI_Comm comm;
  int number;
  long long written;
  MPI_File same; /* a handle on the file that all open */
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

static void* open_same(void* worker) {
  struct Worker* const self = worker;
  self->same = open_by(self->comm, path, MPI_MODE_CREATE | MPI_MODE_WRONLY);
  return NULL;
}

/* One after the other writes the same place; the last stays, whoever closes first. */
static void write_by_all(struct Worker* workers) {
  int data = 0;
  for (int turn = 0; turn < kTurns; ++turn) {
    run_threads(&open_same, workers, sizeof *workers);
    for (int i = 0; i < kThreads; ++i) {
      data = turn * kThreads + i;
      CHECK(MPI_File_write_at(workers[i].same, rank * (MPI_Offset)sizeof data, &data, 1, MPI_INT,
                              MPI_STATUS_IGNORE) == MPI_SUCCESS);
      workers[i].written += sizeof data;
    }
    for (int i = kThreads - 1; i >= 0; --i) CHECK(MPI_File_close(&workers[i].same) == MPI_SUCCESS);
    int found = -1;
    FILE* const file = fopen(path, "rb");
    CHECK(file != NULL && fseek(file, rank * (long)sizeof found, SEEK_SET) == 0);
    CHECK(fread(&found, sizeof found, 1, file) == 1 && fclose(file) == 0);
    CHECK(found == data);
    MPI_Barrier(MPI_COMM_WORLD);
  }
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
  write_by_all(workers);
  for (int i = 0; i < kThreads; ++i) {
    MPI_Comm_free(&workers[i].comm);
    written += workers[i].written;
  }
  tell("written", written);
  MPI_Finalize();
  return 0;
}
