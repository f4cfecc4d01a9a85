// Between two looks at what others do.
#pragma once

#include <sched.h>
#include <time.h>

#include <algorithm>

namespace penstock::exec {

// While others are to do something: first the core for them, then sleep, longer each time.
class Pause {
 public:
  void again() {
    if (++looks_ < kLooks) {
      ::sched_yield();
      return;
    }
    const timespec t{0, sleep_ns_};
    ::nanosleep(&t, nullptr);
    sleep_ns_ = std::min(sleep_ns_ * 2, kLongest_ns);
  }
  void reset() { *this = {}; }

 private:
  static constexpr int kLooks = 50;
  static constexpr long kLongest_ns = 1'000'000;
  int looks_ = 0;
  long sleep_ns_ = 20'000;
};

}  // namespace penstock::exec
