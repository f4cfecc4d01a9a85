/* Opens FILE with hints (KEY VALUE ...), writes a byte per rank, prints the method that serves it
 * and the hints in effect. */
#include <mpi.h>
#include <stdio.h>

static const char* const kHints[] = {"cb_nodes", "cb_buffer_size", "romio_cb_write",
                                     "striping_unit", "striping_factor"};

int main(int argc, char** argv) {
  MPI_Info info, got;
  MPI_File file;
  int rank, found;
  char value[MPI_MAX_INFO_VAL + 1];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Info_create(&info);
  for (int i = 2; i + 1 < argc; i += 2) MPI_Info_set(info, argv[i], argv[i + 1]);
  MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, info, &file);
  MPI_File_write_at_all(file, rank, "x", 1, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_get_info(file, &got);
  MPI_Info_get(got, "penstock_method", MPI_MAX_INFO_VAL, value, &found);
  if (rank == 0) printf("method %s\n", found ? value : "none");
  for (size_t i = 0; i < sizeof kHints / sizeof *kHints; ++i) {
    MPI_Info_get(got, kHints[i], MPI_MAX_INFO_VAL, value, &found);
    if (rank == 0) printf("%s=%s;\n", kHints[i], found ? value : "none");
  }
  MPI_File_close(&file);
  MPI_Info_free(&info);
  MPI_Info_free(&got);
  MPI_Finalize();
  return 0;
}
