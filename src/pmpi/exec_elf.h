/* What penstock-exec needs to know of a program file. */
#ifndef PENSTOCK_PMPI_EXEC_ELF_H
#define PENSTOCK_PMPI_EXEC_ELF_H

/* FLAVOUR_OTHER: an MPI library, and none that an engine is built for. */
enum mpi_flavour { FLAVOUR_UNKNOWN, FLAVOUR_MPICH, FLAVOUR_OPENMPI, FLAVOUR_ABI, FLAVOUR_OTHER };

struct program_file {
  int is_elf;               /* 0: a script, or nothing that can be read */
  int is_foreign;           /* of another machine, word size or C library than this one */
  int is_static;            /* no dynamic loader: no library can be preloaded */
  int has_own_mpi;          /* it defines MPI functions itself: a static MPI library is in it */
  enum mpi_flavour flavour; /* by the libraries that it, or one of them, needs */
  char library[128];        /* the one that told */
  int has_asan;             /* AddressSanitizer's library, which wants to be the first of all */
};

/* `path` as it will be executed. */
struct program_file inspect_program(const char* path);

#endif
