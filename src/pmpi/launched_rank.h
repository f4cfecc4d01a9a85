/* A process's rank as its launcher numbers it, before MPI does. */
#ifndef PENSTOCK_PMPI_LAUNCHED_RANK_H
#define PENSTOCK_PMPI_LAUNCHED_RANK_H

#include <stddef.h>
#include <string.h>

/* `variable` is getenv, or what stands in for it. NULL: of no launcher that is known. */
static inline const char* launched_rank(const char* (*variable)(const char* name)) {
  static const char* const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                      "SLURM_PROCID"};
  const char* rank = NULL;
  for (size_t i = 0; i < sizeof ranks / sizeof *ranks && rank == NULL; ++i)
    rank = variable(ranks[i]);
  return rank;
}

/* One message per job: by the process that the launcher calls rank 0, or that has no launcher. */
static inline int speaks_for_job(const char* (*variable)(const char* name)) {
  const char* rank = launched_rank(variable);
  return rank == NULL || strcmp(rank, "0") == 0;
}

#endif
