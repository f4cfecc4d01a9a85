// The monotonic clock, in seconds.
#pragma once

#include <cstdint>
#include <ctime>

namespace penstock {

inline double now_s() noexcept {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

// The same clock as of the last tick of the system's timer, some milliseconds ago at most; it costs
// less.
inline double coarse_now_s() noexcept {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

inline int64_t ns(double seconds) { return int64_t(seconds * 1e9); }

// Adds the time until its end to `sum_s`.
class Stopwatch {
 public:
  explicit Stopwatch(double& sum_s) noexcept : sum_s_(sum_s), begin_s_(now_s()) {}
  ~Stopwatch() { sum_s_ += now_s() - begin_s_; }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& sum_s_;
  double begin_s_;
};

}  // namespace penstock
