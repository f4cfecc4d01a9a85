/* A library and a program that behave as PnetCDF >= 1.15 does by default: it says its version by
 * ncmpi_inq_libvers and writes the file by itself, with no call of MPI-IO. Built twice: with
 * -DLIBRARY as libpnetcdf.so, and as a program on it. */
#include <fcntl.h>
#include <unistd.h>

#ifdef LIBRARY
const char* ncmpi_inq_libvers(void);
const char* ncmpi_inq_libvers(void) { return "version = 1.15.1 of 31 Jul 2026"; }
#else
#include "cases.h"

const char* ncmpi_inq_libvers(void);

static void write_past_mpi(const char* path) {
  CHECK(strstr(ncmpi_inq_libvers(), "1.15") != NULL);
  const int file = open(path, O_CREAT | O_WRONLY, 0666);
  CHECK(pwrite(file, &rank, sizeof rank, rank * (off_t)sizeof rank) == sizeof rank);
  close(file);
}

static void read_back(const char* path) {
  int got = -1;
  const int file = open(path, O_RDONLY);
  CHECK(pread(file, &got, sizeof got, rank * (off_t)sizeof got) == sizeof got && got == rank);
  close(file);
}

int main(int argc, char** argv) {
  static const struct library_case cases[] = {
      {"own_driver", write_past_mpi, read_back},
      {NULL, NULL, NULL},
  };
  return run_cases(argc, argv, cases, ".nc", "PnetCDF's own driver (stand-in)");
}
#endif
