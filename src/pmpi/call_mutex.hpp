// A recursive mutex that tells whether this thread has it: a signal's handler may end the program
// in the middle of a call.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

namespace penstock::pmpi {

class CallMutex {
 public:
  void lock() {
    mutex_.lock();
    took();
  }
  bool try_lock() {
    if (!mutex_.try_lock()) return false;
    took();
    return true;
  }
  void unlock() {
    if (--times_ == 0) holder_.store({}, std::memory_order_relaxed);
    mutex_.unlock();
  }

  bool is_held_here() const noexcept {
    return holder_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }

 private:
  void took() {
    if (times_++ == 0) holder_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  }

  std::recursive_mutex mutex_;
  int times_ = 0;  // guarded by it
  std::atomic<std::thread::id> holder_{};
};

// While it lives this thread is in a call that has no file of its own yet, and may be about
// others'.
class Opening {
 public:
  Opening() noexcept { ++here(); }
  ~Opening() { --here(); }
  Opening(const Opening&) = delete;
  Opening& operator=(const Opening&) = delete;

  static int& here() noexcept {
    static thread_local int openings = 0;
    return openings;
  }
};

}  // namespace penstock::pmpi
