// Point-to-point messages of MpiComm.
#pragma once

#include <mpi.h>

#include <memory>

#include "comm/comm.hpp"
#include "comm/mpi_wait.hpp"

namespace penstock::comm {

// `comm` must outlive it and return errors.
std::unique_ptr<Transfers> make_mpi_transfers(MPI_Comm comm);

}  // namespace penstock::comm
