/* The environment and the directory as the shim's process had them when it started; of the
 * environment the variables that Penstock reads. A program may clear its environment before it
 * opens a file, on some ranks alone, and all ranks must still know what they were started with. */
#ifndef PENSTOCK_PMPI_SHIM_ENVIRONMENT_H
#define PENSTOCK_PMPI_SHIM_ENVIRONMENT_H

/* The variable's value now or, where there is none, at the start; or NULL. */
__attribute__((visibility("hidden"))) const char* penstock_variable(const char* name);

/* The working directory at the start; NULL where it is not known. */
__attribute__((visibility("hidden"))) const char* penstock_start_directory(void);

/* Those of the start, "NAME=value", with NULL behind the last. */
__attribute__((visibility("hidden"))) const char* const* penstock_start_variables(void);

#endif
