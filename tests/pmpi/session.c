/* A session beside MPI_Init: files on its communicator, of all ranks and of the first alone, are
 * served as those of MPI_COMM_WORLD, and what Penstock asks about that communicator is no error of
 * the program, which ends with the first. `session FILE`, any number of ranks. */
#include <string.h>

#include "job.h"

enum { n = 1000 };

/* Built against the header of Open MPI 4.1, run with the library of 5. */
#if MPI_VERSION < 4
typedef struct ompi_instance_t* MPI_Session;
#define WEAK __attribute__((weak))
WEAK int MPI_Session_init(MPI_Info info, MPI_Errhandler handler, MPI_Session* session);
WEAK int MPI_Session_finalize(MPI_Session* session);
WEAK int MPI_Group_from_session_pset(MPI_Session session, const char* name, MPI_Group* group);
WEAK int MPI_Comm_create_from_group(MPI_Group group, const char* name, MPI_Info info,
                                    MPI_Errhandler handler, MPI_Comm* comm);
#endif

static long long written;

static void write_both(MPI_Comm comm, int at) {
  MPI_File fh;
  char data[n];
  memset(data, 'a' + rank, n);
  CHECK(MPI_File_open(comm, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &fh) ==
        MPI_SUCCESS);
  CHECK(MPI_File_write_at_all(fh, (at + rank) * n, data, n, MPI_BYTE, MPI_STATUS_IGNORE) ==
        MPI_SUCCESS);
  CHECK(MPI_File_write_at(fh, (at + ranks + rank) * n, data, n, MPI_BYTE, MPI_STATUS_IGNORE) ==
        MPI_SUCCESS);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  written += 2 * n;
}

static void by_group(MPI_Group group, const char* name, int at) {
  MPI_Comm comm;
  CHECK(MPI_Comm_create_from_group(group, name, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm) ==
        MPI_SUCCESS);
  write_both(comm, at);
  MPI_Comm_free(&comm);
}

static void check_file(int at, int places) {
  char data[n];
  for (int i = 0; i < places; ++i) {
    CHECK(read_back(path, (long long)(at + i) * n, data, n) == n);
    for (int byte = 0; byte < n; ++byte) CHECK(data[byte] == 'a' + i % (places / 2));
  }
}

static void use_session(void) {
  MPI_Session session;
  MPI_Group all, first;
  const int zero = 0;
  CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session) == MPI_SUCCESS);
  CHECK(MPI_Group_from_session_pset(session, "mpi://WORLD", &all) == MPI_SUCCESS);
  MPI_Group_incl(all, 1, &zero, &first);
  by_group(all, "penstock.tests.all", 0);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) check_file(0, 2 * ranks);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    ranks = 1;
    by_group(first, "penstock.tests.first", 0);
    check_file(0, 2);
  }
  MPI_Group_free(&first);
  MPI_Group_free(&all);
  MPI_Session_finalize(&session);
}

int main(int argc, char** argv) {
  start_job(argc, argv);
  use_session();
  tell("written", written);
  MPI_Finalize();
  return 0;
}
