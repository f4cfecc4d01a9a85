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

// Between two tests of a request: first nothing, then the core to somebody else, then sleep, longer
// each time. A wait starts anew for every message that arrives.
class Backoff {
 public:
  void pause() {
    const double waited_s = now_s() - begin_s_;
    if (waited_s < kSpin_s) return;
    if (waited_s < kYield_s) {
      sched_yield();
      return;
    }
    const timespec t{0, sleep_ns_};
    nanosleep(&t, nullptr);
    sleep_ns_ = std::min(sleep_ns_ + sleep_ns_ / 2, kLongest_ns);
  }

 private:
  static constexpr double kSpin_s = 20e-6, kYield_s = 200e-6;
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

}  // namespace penstock::comm
