#define _GNU_SOURCE
#include "pmpi/shim_environment.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char prefix[] = "PENSTOCK_";
static const char* const others[] = {"HOME",
                                     "MPI_LOCALNRANKS",
                                     "OMPI_COMM_WORLD_LOCAL_SIZE",
                                     "OMPI_COMM_WORLD_RANK",
                                     "PMI_RANK",
                                     "PMIX_NAMESPACE",
                                     "PMIX_RANK",
                                     "SLURM_JOB_ID",
                                     "SLURM_PROCID",
                                     "SLURM_STEP_ID",
                                     "SLURM_STEP_NUM_NODES",
                                     "SLURM_STEP_NUM_TASKS",
                                     "XDG_CONFIG_HOME"};
enum { OTHERS = sizeof others / sizeof *others };

static const char* const none[] = {NULL};
static const char* const* at_start = none;

/* The value in "NAME=value" when that is its name; or NULL. */
static const char* value_of(const char* variable, const char* name) {
  const size_t n = strlen(name);
  return strncmp(variable, name, n) == 0 && variable[n] == '=' ? variable + n + 1 : NULL;
}

static int is_read_by_us(const char* variable) {
  if (strncmp(variable, prefix, sizeof prefix - 1) == 0) return 1;
  for (size_t i = 0; i < OTHERS; ++i)
    if (value_of(variable, others[i]) != NULL) return 1;
  return 0;
}

/* Copies: a program may write over what it was started with, to show a title in its place. Without
 * memory for them there are none. */
__attribute__((constructor)) static void look_at_environment(void) {
  size_t n = 0;
  for (char** v = environ; v != NULL && *v != NULL; ++v) n += is_read_by_us(*v) ? 1 : 0;
  const char** copies = n > 0 ? calloc(n + 1, sizeof *copies) : NULL;
  if (copies == NULL) return;
  size_t kept = 0;
  for (char** v = environ; *v != NULL && kept < n; ++v) {
    if (!is_read_by_us(*v)) continue;
    copies[kept] = strdup(*v);
    kept += copies[kept] != NULL ? 1 : 0;
  }
  at_start = copies;
}

const char* const* penstock_start_variables(void) { return at_start; }

static char* start_directory;

__attribute__((constructor)) static void look_at_directory(void) {
  start_directory = getcwd(NULL, 0);
}

const char* penstock_start_directory(void) { return start_directory; }

const char* penstock_variable(const char* name) {
  const char* now = getenv(name);
  if (now != NULL) return now;
  for (const char* const* v = at_start; *v != NULL; ++v)
    if (value_of(*v, name) != NULL) return value_of(*v, name);
  return NULL;
}
