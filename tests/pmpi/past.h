/* The MPI library's own functions, past Penstock, which stands in front of both their names.
 * `_GNU_SOURCE` is defined before the first header. */
#ifndef PENSTOCK_TESTS_PMPI_PAST_H
#define PENSTOCK_TESTS_PMPI_PAST_H

#include <dlfcn.h>

#include "check.h"

static inline void* librarys(const char* function) {
  Dl_info info;
  CHECK(dladdr(dlsym(RTLD_DEFAULT, "MPI_Comm_rank"), &info) != 0);
  void* const library = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  CHECK(library != NULL);
  void* const found = dlsym(library, function);
  CHECK(found != NULL);
  return found;
}

static inline int open_past_penstock(const char* path, int mode, MPI_File* file) {
  int (*open_it)(MPI_Comm, const char*, int, MPI_Info, MPI_File*);
  *(void**)&open_it = librarys("PMPI_File_open");
  return open_it(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, file);
}

static inline int close_past_penstock(MPI_File* file) {
  int (*close_it)(MPI_File*);
  *(void**)&close_it = librarys("PMPI_File_close");
  return close_it(file);
}

#endif
