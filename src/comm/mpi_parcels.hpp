// Parcels of MpiComm.
#pragma once

#include <mpi.h>

#include <memory>

#include "base/error.hpp"
#include "comm/parcels.hpp"

namespace penstock::comm {

// Collective over `comm`, which is duplicated. By any thread where the program was granted
// MPI_THREAD_MULTIPLE. The last of its calls comes before MPI_Finalize.
Result<std::unique_ptr<Parcels>> make_mpi_parcels(MPI_Comm comm);

}  // namespace penstock::comm
