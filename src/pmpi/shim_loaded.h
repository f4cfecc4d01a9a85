/* The libraries that the process has loaded. Nothing is loaded by asking. */
#ifndef PENSTOCK_PMPI_SHIM_LOADED_H
#define PENSTOCK_PMPI_SHIM_LOADED_H

#define PENSTOCK_HIDDEN __attribute__((visibility("hidden")))

/* A handle of the library that the loader has under this name or path; NULL: it has none. */
PENSTOCK_HIDDEN void* penstock_opened(const char* name);

/* The first library, in the loader's order, whose path is the name behind its last slash or, with
 * `anywhere`, has it somewhere, and of which `suits` (NULL: any) says so; NULL: there is none. */
enum penstock_place { PENSTOCK_WHOLE_NAME, PENSTOCK_ANYWHERE };
PENSTOCK_HIDDEN void* penstock_find_loaded(const char* name, enum penstock_place where,
                                           int (*suits)(void* handle));

PENSTOCK_HIDDEN const char* penstock_base_name(const char* path);

#endif
