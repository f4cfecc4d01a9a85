// What the library says of a call on one of our files, whatever the program's error handler makes
// of it: MPICH 5 returns success where a handler came back.
#pragma once

#include <mpi.h>

#include <utility>

#include "pmpi/error_handler.hpp"
#include "pmpi/errors.hpp"
#include "pmpi/open_files.hpp"

namespace penstock::pmpi {

// Calls the library, and no handler.
template <class F>
int quietly(MPI_File handle, OpenFile& file, F&& call) {
  const HandlerAside aside(handle, file);
  return std::forward<F>(call)();
}

// Calls the library, and then the handler as the library would.
template <class F>
int by_library(MPI_File handle, OpenFile& file, F&& call) {
  const int rc = quietly(handle, file, std::forward<F>(call));
  return rc == MPI_SUCCESS ? rc : raise(handle, rc);
}

// Flushes what is staged, and raises what was lost: that is what the program hears of this call,
// whatever the library says of it later, since a loss that counts as told must have been.
int flush_first(MPI_File handle, OpenFile& file, engine::Drain drain);

// What an entry point returns of a call behind such a flush.
inline int first_of(int lost, int rc) { return lost != MPI_SUCCESS ? lost : rc; }

// Collective. The worst error of any rank, as an MPI class: the library tells each its own.
int worst_of_all(OpenFile& file, int rc);

}  // namespace penstock::pmpi
