// MPI_File calls, as a program makes them: whoever serves them. Alone it is the MPI library, under
// penstock-exec it is Penstock.
#pragma once

#include <mpi.h>

#include <vector>

#include "route.hpp"
#include "turns.hpp"

namespace penstock::measure {

// Which communicator opens which file.
struct Communicators {
  std::vector<MPI_Comm> shared;    // by thread: each thread opens a shared file with its peers
  std::vector<MPI_Comm> per_node;  // likewise
  Turns* turns = nullptr;          // nullptr: one thread
};

Result<std::unique_ptr<Route>> make_mpi_route(const RouteRequest& request,
                                              const Communicators& communicators);

}  // namespace penstock::measure
