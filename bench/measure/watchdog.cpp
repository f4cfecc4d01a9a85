// One thread per process that looks at its workers now and then.
#include "watchdog.hpp"

#include <algorithm>
#include <chrono>

#include "helper_thread.hpp"

namespace penstock::measure {

Watchdog::Watchdog(const std::vector<Pulse>& pulses, double patience_s,
                   std::function<void(const Hang&)> give_up)
    : pulses_(pulses), patience_s_(patience_s), give_up_(std::move(give_up)) {
  if (patience_s > 0) thread_ = helper_thread([this] { run(); });
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Watchdog::run() {
  const std::chrono::duration<double> period(std::clamp(patience_s_ / 4, 0.01, 1.0));
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, period, [&] { return stopping_; })) {
    const double now = now_s();
    for (size_t thread = 0; thread < pulses_.size(); ++thread) {
      const char* where = pulses_[thread].where();
      const double seconds = now - pulses_[thread].since_s();
      if (where == nullptr || seconds < patience_s_) continue;
      give_up_({int(thread), where, seconds});
      return;
    }
  }
}

}  // namespace penstock::measure
