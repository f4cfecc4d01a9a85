// What MPI tells a rank without asking others.
#pragma once

#include <mpi.h>

namespace penstock::comm {

// Between MPI_Init and MPI_Finalize: else MPI's other calls end the job.
inline bool mpi_is_running() {
  int initialized = 0, finalized = 0;
  PMPI_Initialized(&initialized);
  PMPI_Finalized(&finalized);
  return initialized != 0 && finalized == 0;
}

inline int rank_in(MPI_Comm comm) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  return rank;
}

inline int size_in(MPI_Comm comm) {
  int size = 1;
  PMPI_Comm_size(comm, &size);
  return size;
}

inline bool is_inter(MPI_Comm comm) {
  int inter = 0;
  PMPI_Comm_test_inter(comm, &inter);
  return inter != 0;
}

// The processes of `comm` beside those of MPI_COMM_WORLD: MPI_IDENT, MPI_SIMILAR (in another order)
// or MPI_UNEQUAL. By their groups: to Open MPI, a session's communicator and MPI_COMM_WORLD in one
// call are an error of the program, which ends it.
inline int compared_with_world(MPI_Comm comm) {
  if (comm == MPI_COMM_WORLD) return MPI_IDENT;
  MPI_Group group = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
  int result = MPI_UNEQUAL;
  PMPI_Comm_group(comm, &group);
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  PMPI_Group_compare(group, world, &result);
  PMPI_Group_free(&world);
  PMPI_Group_free(&group);
  return result;
}

}  // namespace penstock::comm
