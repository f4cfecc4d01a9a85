#include "comm/mpi_other_nodes.hpp"

#include <atomic>
#include <cstdlib>
#include <string_view>

#include "comm/mpi_ask.hpp"

namespace penstock::comm {
namespace {

std::atomic<bool> world_met_on_one_node = false;

bool is_number(const char* text, int number) {
  return text != nullptr && *text != '\0' && std::atoi(text) == number;
}

// By what started this rank: Open MPI and PRRTE, Hydra (MPICH, Intel MPI), or Slurm itself. The
// first of them that says something decides: daemons of the others may be started by Slurm, in a
// step that has fewer nodes than the job.
bool has_all_ranks_here(int ranks, Variable variable) {
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"})
    if (const char* here = variable(name)) return is_number(here, ranks);
  return is_number(variable("SLURM_STEP_NUM_NODES"), 1) &&
         is_number(variable("SLURM_STEP_NUM_TASKS"), ranks);
}

}  // namespace

bool may_have_other_nodes(int processes, int nodes, Variable variable) {
  const int world = size_in(MPI_COMM_WORLD);
  if (processes >= world) {  // all of the world, and nobody else: strangers do not meet
    if (nodes == 1) world_met_on_one_node = true;
    return false;
  }
  return !world_met_on_one_node && !has_all_ranks_here(world, variable);
}

}  // namespace penstock::comm
