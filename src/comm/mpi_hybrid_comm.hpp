// Workers that are threads of MPI ranks: worker = rank * threads + thread. One Comm per worker, so
// that a plan runs on ranks x threads as it does on ranks or on threads alone.
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "comm/comm.hpp"

namespace penstock::comm {

// Collective over the ranks of `parent`, which is duplicated; called by one thread of each, with
// the same number of threads. Gives this rank's workers by thread: each is then used by a thread of
// its own. More than one thread needs MPI_THREAD_MULTIPLE, else all ranks get an error. The workers
// of a rank are destroyed before MPI_Finalize, by whichever threads.
Result<std::vector<std::unique_ptr<Comm>>> make_hybrid_team(MPI_Comm parent, int threads);

}  // namespace penstock::comm
