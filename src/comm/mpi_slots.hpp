// Slots of MpiComm.
#pragma once

#include <mpi.h>

#include <memory>

#include "comm/comm.hpp"
#include "comm/slots.hpp"

namespace penstock::comm {

// Collective over `mpi`; `comm` are the same ranks, for agreement. All get theirs or none does:
// where the library has no one-sided communication, or not memory that its owner may look into.
// The last call comes before MPI_Finalize.
Result<std::unique_ptr<Slots>> make_mpi_slots(MPI_Comm mpi, Comm& comm, const SlotsShape& shape);

}  // namespace penstock::comm
