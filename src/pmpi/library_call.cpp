#include "pmpi/library_call.hpp"

namespace penstock::pmpi {

int flush_first(MPI_File handle, OpenFile& file, engine::Drain drain) {
  const ErrorClass lost = file.file->flush(drain);
  return lost == ErrorClass::none ? MPI_SUCCESS : raise(handle, mpi_class(lost));
}

int worst_of_all(OpenFile& file, int rc) {
  int64_t worst[] = {int64_t(class_of_mpi(rc))};
  return file.file->comm().all_max(worst) ? mpi_class(ErrorClass(worst[0])) : rc;
}

}  // namespace penstock::pmpi
