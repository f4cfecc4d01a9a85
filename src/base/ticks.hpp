// The processor's counter, for what takes hardly longer than a look at the clock does. Where it may
// not count evenly on all cores, the clock itself, in nanoseconds. Of one process.
#pragma once

#include <cstdint>

#include "base/clock.hpp"

namespace penstock {

using Ticks = int64_t;

#if defined(__x86_64__)
// Whether the processor says that its counter stops at no time and has one speed.
extern const bool counter_is_even;
#endif

inline Ticks ticks() noexcept {
#if defined(__x86_64__)
  if (counter_is_even) return Ticks(__builtin_ia32_rdtsc());
#elif defined(__aarch64__)
  Ticks now = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(now));
  return now;
#endif
  return ns(now_s());
}

// To about a ten-thousandth, from some milliseconds after the process has begun.
double seconds_of(Ticks duration) noexcept;
double time_of(Ticks when) noexcept;  // by now_s()
// By a speed that was measured once: without a look at the clock.
double about_seconds(Ticks duration) noexcept;

// As Stopwatch, for what takes hardly longer than the looks at a clock.
class TickWatch {
 public:
  explicit TickWatch(double& sum_s) noexcept : sum_s_(sum_s), begin_(ticks()) {}
  ~TickWatch() { sum_s_ += about_seconds(ticks() - begin_); }
  TickWatch(const TickWatch&) = delete;
  TickWatch& operator=(const TickWatch&) = delete;

 private:
  double& sum_s_;
  Ticks begin_;
};

}  // namespace penstock
