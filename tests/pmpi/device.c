/* Buffers that CUDA's driver says are a device's go through the MPI library's packing, in calls of
 * each kind; all others do not. `device FILE`, any number of ranks. */
#include <dlfcn.h>
#include <string.h>

#include "job.h"

enum { n = 5000, calls = 5 };

static char device[n], host[n], memory[2 * n];

static void load_driver(void) {
  void* const driver = dlopen(FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
  if (driver == NULL) fprintf(stderr, "%s\n", dlerror());
  CHECK(driver != NULL);
  void (*const mark)(void*, size_t) = (void (*)(void*, size_t))dlsym(driver, "fake_cuda_device");
  CHECK(mark != NULL);
  mark(device, sizeof device);
}

static MPI_Offset place(int call) { return ((MPI_Offset)call * ranks + rank) * n; }

static void write_all_ways(MPI_File fh) {
  MPI_Status status;
  MPI_Request request;
  memset(device, 'a' + rank, n);
  memset(host, 'A' + rank, n);
  CHECK(MPI_File_write_at_all(fh, place(0), device, n, MPI_BYTE, &status) == MPI_SUCCESS);
  CHECK(bytes_of(&status) == n);
  CHECK(MPI_File_write_at(fh, place(1), device, n / 8, MPI_DOUBLE, &status) == MPI_SUCCESS);
  CHECK(MPI_File_write_at(fh, place(1), device, n / 8, MPI_DOUBLE, &status) == MPI_SUCCESS);
  CHECK(bytes_of(&status) == n);
  CHECK(MPI_File_iwrite_at(fh, place(2), device, n, MPI_BYTE, &request) == MPI_SUCCESS);
  CHECK(MPI_Wait(&request, &status) == MPI_SUCCESS);
  CHECK(MPI_File_write_at_all_begin(fh, place(3), device, n, MPI_BYTE) == MPI_SUCCESS);
  CHECK(MPI_File_write_at_all_end(fh, device, &status) == MPI_SUCCESS);
  CHECK(bytes_of(&status) == n);
  CHECK(MPI_File_write_at_all(fh, place(4), host, n, MPI_BYTE, &status) == MPI_SUCCESS);
}

/* The last rank's part ends with the file, in the middle of what it asks for. */
static void read_past_the_end(MPI_File fh) {
  MPI_Status status;
  CHECK(MPI_File_sync(fh) == MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  memset(device, '?', n);
  CHECK(MPI_File_read_at_all(fh, place(calls - 1) + n / 2, device, n, MPI_BYTE, &status) ==
        MPI_SUCCESS);
  const int whole = rank + 1 < ranks;
  CHECK(bytes_of(&status) == (whole ? n : n / 2));
  for (int i = 0; i < n; ++i)
    CHECK(device[i] == (i < n / 2 ? 'A' + rank : whole ? 'A' + rank + 1 : '?'));
}

static void check_file(void) {
  for (int call = 0; call < calls; ++call) {
    CHECK(read_back(path, place(call), memory, n) == n);
    for (int i = 0; i < n; ++i) CHECK(memory[i] == (call + 1 < calls ? 'a' : 'A') + rank);
  }
}

int main(int argc, char** argv) {
  start_job(argc, argv);
  load_driver();
  MPI_File fh = open_fresh();
  write_all_ways(fh);
  read_past_the_end(fh);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  check_file();
  tell("written", (calls + 1LL) * n);
  tell("read", rank + 1 < ranks ? n : n / 2);
  MPI_Finalize();
  return 0;
}
