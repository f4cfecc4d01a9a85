// Requests of non-blocking calls that are done when they return: a generalised request that is
// complete already is legal at every thread level, and every Wait and Test knows it, without any
// progress.
#pragma once

#include <mpi.h>

#include <cstdint>

namespace penstock::pmpi {

// One whose status says `bytes`.
int completed_request(int64_t bytes, MPI_Request* request);

}  // namespace penstock::pmpi
