// A library that never comes back from a failed write must not hang the measurement: after a while
// the sample ends as failed, and says where.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.hpp"

namespace penstock::measure {

// What a worker is inside of; read by the watchdog.
class Pulse {
 public:
  // `where` lives for ever: a literal.
  void enter(const char* where) noexcept { enter(where, now_s()); }
  void enter(const char* where, double now) noexcept {
    since_s_.store(now, std::memory_order_relaxed);
    where_.store(where, std::memory_order_release);
  }
  void leave() noexcept { where_.store(nullptr, std::memory_order_release); }
  // nullptr: it works for itself.
  const char* where() const noexcept { return where_.load(std::memory_order_acquire); }
  double since_s() const noexcept { return since_s_.load(std::memory_order_relaxed); }

 private:
  std::atomic<const char*> where_ = nullptr;
  std::atomic<double> since_s_ = 0;
};

struct Hang {
  int thread;
  const char* where;
  double seconds;
};

class Watchdog {
 public:
  // Calls `give_up` once, from a thread of its own, when a worker has been in one call for
  // `patience_s` seconds; 0: never. `pulses` outlive the watchdog.
  Watchdog(const std::vector<Pulse>& pulses, double patience_s,
           std::function<void(const Hang&)> give_up);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;

 private:
  void run();

  const std::vector<Pulse>& pulses_;
  double patience_s_;
  std::function<void(const Hang&)> give_up_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace penstock::measure
