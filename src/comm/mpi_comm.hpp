// Ranks of an MPI communicator. Waiting never spins without end: ranks may
// outnumber cores, and the program's own messages must progress while we wait.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>

#include "comm/comm.hpp"

namespace penstock::comm {

// Collective over `parent`, which is duplicated; errors are returned, never fatal. All that are of
// one rank alone share a duplicate, so a rank must not send itself messages there.
Result<std::unique_ptr<Comm>> make_mpi_comm(MPI_Comm parent);
// Likewise, of ranks whose threads send each other messages.
Result<std::unique_ptr<Comm>> make_mpi_comm_of_threads(MPI_Comm parent);
// What `ranks` sends its messages by. REQUIRES one of make_mpi_comm(), or split off one.
MPI_Comm handle_of(const Comm& ranks);
// Collective. The sum of what the ranks below this one bring. REQUIRES as handle_of().
Result<int64_t> sum_before(Comm& ranks, int64_t mine);

}  // namespace penstock::comm
