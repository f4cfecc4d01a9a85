// How a rank waits for a word in memory that the ranks of its node share: a few looks, then a sleep
// on a futex. All ranks are inside the collective call by now, so no wait depends on what the
// program does elsewhere.
#pragma once

#include <sched.h>

#include "base/clock.hpp"
#include "base/futex.hpp"

namespace penstock::exec {

class NodeWait {
 public:
  // `own_cores`: a waiting rank takes nothing from another.
  explicit NodeWait(bool own_cores) : own_cores_(own_cores) {}

  // Until done(what the word holds). Whoever changes the word wakes those that sleep on it.
  template <class Done>
  void until(const FutexWord& word, Done&& done) const {
    const double begin_s = now_s();
    for (;;) {
      const uint32_t seen = word.load(std::memory_order_acquire);
      if (done(seen)) return;
      const double waited_s = now_s() - begin_s;
      if (own_cores_ && waited_s < kSpin_s) continue;
      if (waited_s < kYield_s)
        ::sched_yield();
      else
        futex_wait(word, seen, kLongestSleep_ns);
    }
  }

 private:
  static constexpr double kSpin_s = 20e-6;    // looks without a pause, where the core is its own
  static constexpr double kYield_s = 200e-6;  // then looks that give the core away

  bool own_cores_;
};

}  // namespace penstock::exec
