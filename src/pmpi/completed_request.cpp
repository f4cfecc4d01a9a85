#include "pmpi/completed_request.hpp"

#include <memory>
#include <new>

#include "pmpi/serve_write.hpp"

namespace penstock::pmpi {
namespace {

extern "C" int query_done(void* bytes, MPI_Status* status) {
  set_status(status, *static_cast<const int64_t*>(bytes));
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  return MPI_SUCCESS;
}

extern "C" int free_done(void* bytes) {
  delete static_cast<int64_t*>(bytes);
  return MPI_SUCCESS;
}

extern "C" int cancel_done(void*, int) { return MPI_SUCCESS; }

}  // namespace

int completed_request(int64_t bytes, MPI_Request* request) {
  auto said = std::unique_ptr<int64_t>(new (std::nothrow) int64_t(bytes));
  if (said == nullptr) return MPI_ERR_NO_MEM;
  const int rc = PMPI_Grequest_start(&query_done, &free_done, &cancel_done, said.get(), request);
  if (rc != MPI_SUCCESS) return rc;
  (void)said.release();  // free_done's now
  return PMPI_Grequest_complete(*request);
}

}  // namespace penstock::pmpi
