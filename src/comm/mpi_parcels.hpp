// Parcels of MpiComm.
#pragma once

#include <memory>

#include "base/error.hpp"
#include "comm/mpi_kept.hpp"
#include "comm/parcels.hpp"

namespace penstock::comm {

// Collective over `ranks`, which must outlive them. By any thread where the program was granted
// MPI_THREAD_MULTIPLE. The last of its calls comes before MPI_Finalize.
Result<std::unique_ptr<Parcels>> make_mpi_parcels(Duplicate& ranks);

}  // namespace penstock::comm
