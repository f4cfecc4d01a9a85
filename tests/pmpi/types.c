/* Three threads of each rank write with one derived datatype, all for the first time and at once,
 * turn by turn with a new one: `types FILE`, any number of ranks, each thread with a file of its
 * own. Prints the bytes that all ranks wrote. */
#include "threaded_job.h"

enum { kTurns = 6000, kWrites = 4, kBlocks = 200, kLongest = 3 };

static pthread_barrier_t all_threads;
static MPI_Datatype type; /* this turn's */
static int type_bytes;

struct Worker {
  MPI_File file;
  int number;
  long long written;
};

static void make_type(void) {
  int lengths[kBlocks];
  MPI_Aint places[kBlocks];
  for (int i = 0; i < kBlocks; ++i) {
    lengths[i] = 1 + i % kLongest;
    places[i] = i * 16 + i % 5;
  }
  MPI_Type_create_hindexed(kBlocks, lengths, places, MPI_BYTE, &type);
  MPI_Type_commit(&type);
  MPI_Type_size(type, &type_bytes);
}

static char data[kBlocks * 16 + 16];

/* Of the last turn, whose types were all alike: the blocks, packed. */
static void check_file(const char* name) {
  static char got[sizeof data];
  for (int i = 0; i < kWrites; ++i) {
    int at = 0;
    CHECK(read_back(name, i * (long)sizeof data, got, type_bytes) == type_bytes);
    for (int block = 0; block < kBlocks; ++block)
      for (int k = 0; k < 1 + block % kLongest; ++k)
        CHECK(got[at++] == data[block * 16 + block % 5 + k]);
    CHECK(at == type_bytes);
  }
}

static void one_turn(struct Worker* self) {
  if (self->number == 0) make_type();
  pthread_barrier_wait(&all_threads);
  for (int i = 0; i < kWrites; ++i)
    CHECK(MPI_File_write_at(self->file, i * (MPI_Offset)sizeof data, data, 1, type,
                            MPI_STATUS_IGNORE) == MPI_SUCCESS);
  self->written += kWrites * type_bytes;
  pthread_barrier_wait(&all_threads);
  if (self->number == 0) MPI_Type_free(&type);
}

static void* work(void* worker) {
  for (int turn = 0; turn < kTurns; ++turn) one_turn(worker);
  return NULL;
}

int main(int argc, char** argv) {
  struct Worker workers[kThreads];
  long long written = 0;
  start_threaded_job(argc, argv);
  for (size_t i = 0; i < sizeof data; ++i) data[i] = (char)(1 + i % 251);
  pthread_barrier_init(&all_threads, NULL, kThreads);
  for (int i = 0; i < kThreads; ++i) {
    char name[4096];
    snprintf(name, sizeof name, "%s.%d-%d", path, rank, i);
    workers[i] = (struct Worker){.number = i};
    CHECK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL,
                        &workers[i].file) == MPI_SUCCESS);
  }
  run_threads(&work, workers, sizeof workers[0]);
  for (int i = 0; i < kThreads; ++i) {
    char name[4096];
    CHECK(MPI_File_close(&workers[i].file) == MPI_SUCCESS);
    snprintf(name, sizeof name, "%s.%d-%d", path, rank, i);
    check_file(name);
    written += workers[i].written;
  }
  tell("written", written);
  MPI_Finalize();
  return 0;
}
