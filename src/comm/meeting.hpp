// A barrier of threads, again and again.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "base/backoff.hpp"

namespace penstock::comm {

class Meeting {
 public:
  explicit Meeting(int threads) : threads_(threads) {}

  // Returns when all threads have entered; what each did before, all see after.
  void meet() {
    std::unique_lock lock(mutex_);
    const int64_t mine = generation_;
    if (++entered_ == threads_) {
      entered_ = 0;
      ++generation_;
      all_here_.notify_all();
      return;
    }
    lock.unlock();
    const auto is_over = [&] { return generation_ != mine; };
    if (comes_soon(is_over)) return;
    lock.lock();
    all_here_.wait(lock, is_over);
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_here_;
  int threads_;
  int entered_ = 0;
  std::atomic<int64_t> generation_ = 0;  // changed with the lock
};

}  // namespace penstock::comm
