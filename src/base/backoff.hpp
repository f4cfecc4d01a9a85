// Between two looks at what others do.
#pragma once

#include <sched.h>
#include <time.h>

#include <algorithm>

#include "base/clock.hpp"

namespace penstock {

// First the core to somebody else, then sleep, longer each time. Who waits for ranks of the same
// collective call waits for little as a rule, and a rank that sleeps is slow to wake, the more so
// on a virtual machine: with 4 to 16 ranks on 2 cores, sleeping after 0.2 ms cost a fifth to a half
// of the rate (docs/decisions/0039).
class Backoff {
 public:
  static constexpr double kYield_s = 10e-3;

  void pause() {
    if (now_s() - begin_s_ < kYield_s) {
      ::sched_yield();
      return;
    }
    const timespec t{0, sleep_ns_};
    ::nanosleep(&t, nullptr);
    sleep_ns_ = std::min(sleep_ns_ + sleep_ns_ / 2, kLongest_ns);
  }
  // Something has come: a new wait begins.
  void reset() { *this = {}; }

 private:
  static constexpr long kLongest_ns = 1'000'000;

  double begin_s_ = now_s();
  long sleep_ns_ = 50'000;
};

// Whether it came before who waits for it should rather sleep.
template <class Done>
bool comes_soon(Done&& done) {
  for (const double begin_s = now_s(); now_s() - begin_s < Backoff::kYield_s; ::sched_yield())
    if (done()) return true;
  return done();
}

}  // namespace penstock
