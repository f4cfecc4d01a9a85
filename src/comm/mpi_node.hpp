// The ranks of one node: split off an MPI communicator, and what they share.
#pragma once

#include <mpi.h>

#include <memory>

#include "comm/comm.hpp"
#include "comm/mpi_wait.hpp"

namespace penstock::comm {

struct NodePart {
  MPI_Comm comm = MPI_COMM_NULL;  // the caller frees it
  int node = 0;
};

// Collective over `mpi`; `comm` are the same ranks, for agreement. All succeed or all fail.
Result<NodePart> split_mpi_by_node(MPI_Comm mpi, Comm& comm);
Result<std::shared_ptr<NodeLock>> make_mpi_node_lock(MPI_Comm mpi, Comm& comm);
Result<std::shared_ptr<SharedSegment>> make_mpi_segment(MPI_Comm mpi, Comm& comm, size_t bytes,
                                                        Room room);

}  // namespace penstock::comm
