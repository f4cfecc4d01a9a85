// A lock in memory that several processes share, for a few looks at what they have there.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/futex.hpp"

namespace penstock::exec {

// All zero bytes: it is open.
class SharedLock {
 public:
  void lock() noexcept {
    uint32_t seen = kOpen;
    if (word_.compare_exchange_strong(seen, kTaken, std::memory_order_acquire)) return;
    while (word_.exchange(kAwaited, std::memory_order_acquire) != kOpen)
      futex_wait(word_, kAwaited, kLongestSleep_ns);
  }
  void unlock() noexcept {
    if (word_.exchange(kOpen, std::memory_order_release) == kAwaited) futex_wake_all(word_);
  }

 private:
  static constexpr uint32_t kOpen = 0, kTaken = 1, kAwaited = 2;
  FutexWord word_;
};

}  // namespace penstock::exec
