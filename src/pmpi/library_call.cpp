#include "pmpi/library_call.hpp"

#include "pmpi/real.hpp"

namespace penstock::pmpi {

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
  give_back(aside_.given);
}

int worst_of_all(OpenFile& file, int rc) {
  int64_t worst[] = {int64_t(class_of_mpi(rc))};
  return file.file->comm().all_max(worst) ? mpi_class(ErrorClass(worst[0])) : rc;
}

}  // namespace penstock::pmpi
