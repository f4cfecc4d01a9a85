#include "base/ticks.hpp"

#include <atomic>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace penstock {

#if defined(__x86_64__)
namespace {
bool is_even() noexcept {
  constexpr unsigned kPowerManagement = 0x80000007, kInvariant = 1U << 8;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(kPowerManagement, &a, &b, &c, &d) != 0 && (d & kInvariant) != 0;
}
}  // namespace
const bool counter_is_even = is_even();
#endif

namespace {

// One moment by both.
struct Moment {
  Ticks at = 0;
  double time_s = 0;
};

// Of several looks the one that took the shortest time, since a core may be taken away in between.
Moment moment() noexcept {
  constexpr int kLooks = 4;
  Moment best;
  Ticks shortest = 0;
  for (int look = 0; look < kLooks; ++look) {
    const Ticks before = ticks();
    const double time_s = now_s();
    const Ticks took = ticks() - before;
    if (look > 0 && took >= shortest) continue;
    shortest = took;
    best = {before + took / 2, time_s};
  }
  return best;
}

const Moment kBegin = moment();  // after counter_is_even

double seconds_per_tick(const Moment& now) noexcept {
  const Ticks passed = now.at - kBegin.at;
  return passed > 0 ? (now.time_s - kBegin.time_s) / double(passed) : 0;
}

// Measured anew until enough time has passed for it to be exact.
double speed() noexcept {
  constexpr double kEnough_s = 0.01;
  static std::atomic<double> measured = 0;
  if (const double known = measured.load(std::memory_order_relaxed); known > 0) return known;
  const Moment now = moment();
  const double speed = seconds_per_tick(now);
  if (now.time_s - kBegin.time_s > kEnough_s) measured.store(speed, std::memory_order_relaxed);
  return speed;
}

}  // namespace

double about_seconds(Ticks duration) noexcept { return double(duration) * speed(); }

double seconds_of(Ticks duration) noexcept { return double(duration) * seconds_per_tick(moment()); }

double time_of(Ticks when) noexcept {
  const Moment now = moment();
  return now.time_s - double(now.at - when) * seconds_per_tick(now);
}

}  // namespace penstock
