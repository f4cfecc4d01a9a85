/* What MPI_File_get_info told of one file is handed to the opens of others, which the configuration
 * beside this program (told_hints.toml) leaves to the MPI library: it stays so, unless the program
 * itself had named the method. `told_hints FILE`. */
#include <string.h>

#include "job.h"

static MPI_Info write_file(const char* ending, MPI_Info hints) {
  const char mine = 'x';
  char name[1024];
  MPI_Info told;
  MPI_File fh;
  snprintf(name, sizeof name, "%s%s", path, ending);
  CHECK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, hints, &fh) ==
        MPI_SUCCESS);
  CHECK(MPI_File_write_at_all(fh, rank, &mine, 1, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  CHECK(MPI_File_get_info(fh, &told) == MPI_SUCCESS);
  CHECK(MPI_File_close(&fh) == MPI_SUCCESS);
  return told;
}

static int names_method(MPI_Info info) {
  char value[MPI_MAX_INFO_VAL + 1] = "";
  int there = 0;
  MPI_Info_get(info, "penstock_method", MPI_MAX_INFO_VAL, value, &there);
  return there;
}

int main(int argc, char** argv) {
  MPI_Info named, told, again;
  start_job(argc, argv);
  told = write_file("", MPI_INFO_NULL);
  CHECK(names_method(told));
  again = write_file(".left", told); /* passed */
  CHECK(!names_method(again));
  MPI_Info_set(told, "penstock_method", "individual");
  MPI_Info_free(&again);
  again = write_file(".left", told);
  MPI_Info_free(&again);
  MPI_Info_free(&told);
  MPI_Info_create(&named);
  MPI_Info_set(named, "penstock_method", "two_phase");
  told = write_file("", named);
  again = write_file(".left", told);
  MPI_Info_free(&named);
  MPI_Info_free(&told);
  MPI_Info_free(&again);
  return end_job(5, 1);
}
