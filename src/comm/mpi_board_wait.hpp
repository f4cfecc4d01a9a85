// How a rank waits at a board (comm/board.hpp) for others that may still be in the program.
#pragma once

#include <mpi.h>

#include "base/backoff.hpp"
#include "comm/mpi_wait.hpp"

namespace penstock::comm {

// Between two looks, with a pace that grows: nothing at all, then a call of MPI's that lets the
// program's own messages progress (who is waited for may wait for one of them), then the core to
// somebody else too.
class BoardWait {
 public:
  explicit BoardWait(MPI_Comm comm) : comm_(comm) {}

  Result<void> operator()() {
    if (++looks_ % kLooksAtOnce != 0) return {};
    int any = 0;
    const int rc = PMPI_Iprobe(MPI_ANY_SOURCE, kNobodysTag, comm_, &any, MPI_STATUS_IGNORE);
    if (rc != MPI_SUCCESS) return mpi_error("MPI_Iprobe", rc);
    if (looks_ >= kLooksAtOnce * kTestsAtOnce) backoff_.pause();
    return {};
  }

 private:
  static constexpr int64_t kLooksAtOnce = 64;  // a fraction of a microsecond
  // Nothing is ever found, which would end the call before anything has progressed. The largest tag
  // that every MPI library has.
  static constexpr int kNobodysTag = 32767;

  MPI_Comm comm_;
  Backoff backoff_;
  int64_t looks_ = 0;
};

}  // namespace penstock::comm
