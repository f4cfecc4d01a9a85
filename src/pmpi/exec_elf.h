/* What penstock-exec needs to know of a program file. */
#ifndef PENSTOCK_PMPI_EXEC_ELF_H
#define PENSTOCK_PMPI_EXEC_ELF_H

enum mpi_flavour { FLAVOUR_UNKNOWN, FLAVOUR_MPICH, FLAVOUR_OPENMPI };

struct program_file {
  int is_elf;               /* 0: a script, or nothing that can be read */
  int is_static;            /* no dynamic loader: no library can be preloaded */
  enum mpi_flavour flavour; /* by the libraries that it, or one of them, needs */
};

/* `path` as it will be executed. */
struct program_file inspect_program(const char* path);

#endif
