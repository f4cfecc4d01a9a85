// How MpiComm waits, reduces, and reports MPI's errors.
#pragma once

#include <mpi.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <span>
#include <string>

#include "base/backoff.hpp"
#include "base/error.hpp"

namespace penstock::comm {

// Whether an MPI call of this process's has failed so far, or a message was not as expected.
inline std::atomic<bool>& mpi_failures() {
  static std::atomic<bool> any{false};
  return any;
}
inline bool mpi_has_failed() { return mpi_failures().load(); }

inline tl::unexpected<Error> mpi_error(const char* operation, int rc) {
  mpi_failures() = true;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  PMPI_Error_string(rc, text, &length);
  return fail(ErrorClass::communication, operation, std::string(text, size_t(length)));
}

// Each test brings a collective a step further: after so many the core goes to somebody else. Where
// ranks have cores of their own, that is after most collectives (docs/decisions/0073).
inline constexpr int kTestsAtOnce = 16;

// Waits for a request that a call with the result `rc` started.
inline Result<void> wait(const char* operation, int rc, MPI_Request request) {
  Backoff backoff;
  for (int done = 0, tests = 1; rc == MPI_SUCCESS; ++tests) {
    rc = PMPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (rc == MPI_SUCCESS && done != 0) return {};
    if (rc == MPI_SUCCESS && tests >= kTestsAtOnce) backoff.pause();
  }
  return mpi_error(operation, rc);
}

inline Result<int> int_count(const char* operation, size_t n) {
  if (n <= size_t(INT_MAX)) return int(n);
  return fail(ErrorClass::communication, operation,
              "counts of MPI-3 end at 2147483647, got " + std::to_string(n));
}

inline Result<void> reduce(MPI_Comm comm, std::span<int64_t> values, MPI_Op op) {
  const Result<int> n = int_count("MPI_Iallreduce", values.size());
  if (!n) return tl::unexpected(n.error());
  MPI_Request request = MPI_REQUEST_NULL;
  const int rc = PMPI_Iallreduce(MPI_IN_PLACE, values.data(), *n, MPI_INT64_T, op, comm, &request);
  return wait("MPI_Iallreduce", rc, request);
}

}  // namespace penstock::comm
