// Slots of MpiComm.
#pragma once

#include <mpi.h>

#include <memory>

#include "comm/comm.hpp"
#include "comm/slots.hpp"

namespace penstock::comm {

// Collective over `mpi`; `comm` are the same ranks, for agreement. All get theirs or none does:
// where the library has no one-sided communication, or not memory that its owner may look into.
// Those that are not freed must be by free_left_slots().
Result<std::unique_ptr<Slots>> make_mpi_slots(MPI_Comm mpi, Comm& comm, const SlotsShape& shape);

// Just before MPI_Finalize, on all ranks: MPICH over UCX ends a job that has a window then. Nobody
// may use any slots any more. Waits for the other ranks, as MPI_Finalize does.
void free_left_slots();

}  // namespace penstock::comm
