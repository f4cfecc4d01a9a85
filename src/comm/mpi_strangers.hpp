// A communicator may have processes of another start of a program: MPI_Comm_spawn, MPI_Comm_connect
// and MPI_Comm_join bring them. Whether Penstock is in those nobody knows, so nothing may wait for
// them but the program's own calls.
#pragma once

#include <mpi.h>

#include "base/error.hpp"

namespace penstock::comm {

// Local, and the same answer on every rank of `comm`, since each is of one MPI_COMM_WORLD alone.
// Looks at each rank of a communicator on which nothing was opened before.
bool has_strangers(MPI_Comm comm);

// Collective over those of `comm` that share this rank's MPI_COMM_WORLD: these, for the caller to
// free.
Result<MPI_Comm> without_strangers(MPI_Comm comm);

}  // namespace penstock::comm
