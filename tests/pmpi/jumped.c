/* A thread of each rank whose calls fail, and whose error handler leaves them by longjmp, ends;
 * the file goes on being used by the main thread: `jumped FILE`, any number of ranks. Prints the
 * bytes that all ranks wrote. */
#include <setjmp.h>

#include "threaded_job.h"

static _Thread_local jmp_buf back;
static MPI_File fh;

static void leave(MPI_File* file, int* code, ...) {
  (void)file, (void)code;
  longjmp(back, 1);
}

/* Of a wrong count, which no library moves a byte for; and of what the library refuses itself. */
static void* fail(void* unused) {
  (void)unused;
  char byte = 'x';
  if (setjmp(back) == 0) {
    (void)MPI_File_write_at(fh, 0, &byte, -1, MPI_CHAR, MPI_STATUS_IGNORE);
    CHECK(!"the handler came back");
  }
  if (setjmp(back) == 0) {
    (void)MPI_File_write_at_all(fh, 0, &byte, -1, MPI_CHAR, MPI_STATUS_IGNORE);
    CHECK(!"the handler came back");
  }
  if (setjmp(back) == 0) {
    (void)MPI_File_get_byte_offset(fh, 0, NULL);
    CHECK(!"the handler came back");
  }
  return NULL;
}

int main(int argc, char** argv) {
  start_threaded_job(argc, argv);
  MPI_Errhandler handler;
  pthread_t thread;
  const int mine = rank;
  int got[2] = {-1, -1};
  CHECK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL,
                      &fh) == MPI_SUCCESS);
  MPI_File_create_errhandler(&leave, &handler);
  MPI_File_set_errhandler(fh, handler);
  CHECK(pthread_create(&thread, NULL, &fail, NULL) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(MPI_File_write_at(fh, 8 * rank, &mine, 4, MPI_CHAR, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  CHECK(MPI_File_write_at_all(fh, 8 * rank + 4, &mine, 4, MPI_CHAR, MPI_STATUS_IGNORE) ==
        MPI_SUCCESS);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  CHECK(read_back(path, 8L * rank, got, sizeof got) == (long)sizeof got);
  CHECK(got[0] == mine && got[1] == mine);
  MPI_Errhandler_free(&handler);
  tell("written", 8);
  MPI_Finalize();
  return 0;
}
