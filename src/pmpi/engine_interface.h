/* What the shim (C, libc only, preloaded) and the engine (C++, linked to one MPI library, opened by
 * the shim) know of each other. Both are built together: a difference in `abi` is refused. */
#ifndef PENSTOCK_PMPI_ENGINE_INTERFACE_H
#define PENSTOCK_PMPI_ENGINE_INTERFACE_H

#ifdef __cplusplus
extern "C" {
#endif

enum penstock_entry {
#define PENSTOCK_ENTRY(name, arguments, treatment) PENSTOCK_ENTRY_##name,
#include "pmpi/entry_points.def"
  PENSTOCK_ENTRY_finalize, /* MPI_Finalize */
  PENSTOCK_ENTRIES
};

/* NOLINTNEXTLINE(modernize-use-using): the shim is C */
typedef void (*penstock_function)(void); /* cast to the true type before every call */

/* Grows with the table, so that a shim and an engine of different builds never meet. */
#define PENSTOCK_ENGINE_ABI (0x60000 + PENSTOCK_ENTRIES)

struct penstock_shim {
  int abi;
  /* The library's PMPI_ functions, by penstock_entry; MPI_Finalize is a tool's where there is one.
   */
  const penstock_function* real;
  /* Whether descriptor 2 is still for messages, and no file of data. */
  int (*may_speak)(void);
  /* Whether this process says what is said once per job: the launcher calls it rank 0. Known before
   * MPI has started. */
  int speaks;
  /* A variable of the environment: its value now or, where there is none, when the process started;
   * or NULL. */
  const char* (*variable)(const char* name);
  /* "NAME=value" of those that Penstock reads, when the process started; NULL is behind the last.
   */
  const char* const* start_variables;
  /* Where the process was started; NULL where that is not known. */
  const char* start_directory;
  /* Whether the program is in MPI_Finalize already: the first file is opened by what it calls. */
  int is_finalizing;
};

enum penstock_answer {
  PENSTOCK_SERVES, /* `table` is filled: functions of the library's own types, none NULL */
  PENSTOCK_OFF,    /* the configuration says off: the library's functions, without a word */
  PENSTOCK_REFUSES /* `abi` does not fit */
};

/* The engine's only export. Called once. */
/* NOLINTNEXTLINE(modernize-use-using): likewise */
typedef int (*penstock_engine_function)(const struct penstock_shim* shim, penstock_function* table);

#ifdef __cplusplus
}
#endif

#endif
