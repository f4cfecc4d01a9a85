// How MpiComm waits, and how it reports MPI's errors.
#pragma once

#include <mpi.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <string>

#include "base/clock.hpp"
#include "base/error.hpp"

namespace penstock::comm {

// Between two tests of a request: first the core to somebody else, then sleep, longer each time. A
// wait starts anew for every message that arrives. Who waits for ranks of the same collective call
// waits for little as a rule, and a rank that sleeps is slow to wake, the more so on a virtual
// machine: with 4 to 16 ranks on 2 cores, sleeping after 0.2 ms cost a fifth to a half of the rate.
class Backoff {
 public:
  void pause() {
    if (now_s() - begin_s_ < kYield_s) {
      sched_yield();
      return;
    }
    const timespec t{0, sleep_ns_};
    nanosleep(&t, nullptr);
    sleep_ns_ = std::min(sleep_ns_ + sleep_ns_ / 2, kLongest_ns);
  }

 private:
  static constexpr double kYield_s = 10e-3;
  static constexpr long kLongest_ns = 1'000'000;

  double begin_s_ = now_s();
  long sleep_ns_ = 50'000;
};

inline tl::unexpected<Error> mpi_error(const char* operation, int rc) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  PMPI_Error_string(rc, text, &length);
  return fail(ErrorClass::communication, operation, std::string(text, size_t(length)));
}

// Waits for a request that a call with the result `rc` started.
inline Result<void> wait(const char* operation, int rc, MPI_Request request) {
  Backoff backoff;
  for (int done = 0; rc == MPI_SUCCESS;) {
    rc = PMPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (rc == MPI_SUCCESS && done != 0) return {};
    if (rc == MPI_SUCCESS) backoff.pause();
  }
  return mpi_error(operation, rc);
}

}  // namespace penstock::comm
