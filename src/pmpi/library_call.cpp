#include "pmpi/library_call.hpp"

#include "pmpi/real.hpp"

namespace penstock::pmpi {
namespace {

bool is_built_in(MPI_Errhandler handler) {
#ifdef MPI_ERRORS_ABORT
  if (handler == MPI_ERRORS_ABORT) return true;
#endif
#ifdef MPIR_ERRORS_THROW_EXCEPTIONS
  if (handler == MPIR_ERRORS_THROW_EXCEPTIONS) return true;
#endif
  return handler == MPI_ERRORS_RETURN || handler == MPI_ERRORS_ARE_FATAL;
}

}  // namespace

HandlerAside::HandlerAside(MPI_File handle, OpenFile& file) : handle_(handle), aside_(file.aside) {
  const std::lock_guard lock(aside_.mutex);
  if (aside_.users++ > 0) return;
  MPI_Errhandler given = MPI_ERRORS_RETURN;
  if (PENSTOCK_REAL(get_errhandler)(handle, &given) != MPI_SUCCESS) given = MPI_ERRORS_RETURN;
  aside_.given = given;
  if (given != MPI_ERRORS_RETURN) PENSTOCK_REAL(set_errhandler)(handle, MPI_ERRORS_RETURN);
}

HandlerAside::~HandlerAside() {
  const std::lock_guard lock(aside_.mutex);
  if (--aside_.users > 0 || aside_.given == MPI_ERRORS_RETURN) return;
  PENSTOCK_REAL(set_errhandler)(handle_, aside_.given);
  if (!is_built_in(aside_.given)) PMPI_Errhandler_free(&aside_.given);
}

}  // namespace penstock::pmpi
