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

// Do the ranks of a node have a core each? Then a waiting rank takes nothing from another.
enum class Cores : uint8_t { shared, own };

// Between two tests of a request: first nothing, then the core to somebody else, then sleep, longer
// each time. A wait starts anew for every message that arrives. A rank with a core of its own
// yields for longer before it sleeps: on virtual machines an idle core is slow to wake.
class Backoff {
 public:
  explicit Backoff(Cores cores) : yield_s_(cores == Cores::own ? 10e-3 : 200e-6) {}

  void pause() {
    const double waited_s = now_s() - begin_s_;
    if (waited_s < kSpin_s) return;
    if (waited_s < yield_s_) {
      sched_yield();
      return;
    }
    const timespec t{0, sleep_ns_};
    nanosleep(&t, nullptr);
    sleep_ns_ = std::min(sleep_ns_ + sleep_ns_ / 2, kLongest_ns);
  }

 private:
  static constexpr double kSpin_s = 20e-6;
  static constexpr long kLongest_ns = 1'000'000;

  double yield_s_;
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
inline Result<void> wait(const char* operation, int rc, MPI_Request request, Cores cores) {
  Backoff backoff(cores);
  for (int done = 0; rc == MPI_SUCCESS;) {
    rc = PMPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (rc == MPI_SUCCESS && done != 0) return {};
    if (rc == MPI_SUCCESS) backoff.pause();
  }
  return mpi_error(operation, rc);
}

}  // namespace penstock::comm
