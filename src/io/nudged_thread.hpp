// A thread that does one thing whenever it is nudged, and starts at the first nudge. Nudges that
// come while it is at work are one. Without any for a while it ends until the next: a program may
// have hundreds of files open, and a limit of threads.
#pragma once

#include <pthread.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>

#include "io/io_thread.hpp"

namespace penstock::io {

class NudgedThread {
 public:
  // `work` runs in the thread, as start_io_thread() demands. `start`: for tests.
  NudgedThread(std::function<void()> work, StartThread start)
      : work_(std::move(work)), start_(start) {}
  NudgedThread(const NudgedThread&) = delete;
  ~NudgedThread() { stop(); }

  // false: it cannot be started, which is tried once; why_none() tells why.
  bool nudge();
  std::optional<Error> why_none() const;
  // Ends it after what it is doing now; nudges that it has not begun with are dropped.
  void stop();

 private:
  void join_if_it_rests();
  static void* run(void* self);
  bool await_nudge();

  const std::function<void()> work_;
  const StartThread start_;
  mutable std::mutex mutex_;  // of all that follows; held for no longer than it takes to look
  std::condition_variable wake_;
  std::optional<pthread_t> thread_;
  std::optional<Error> why_none_;
  bool nudged_ = false, stop_ = false;
  bool rests_ = false;  // it has ended, and is to be joined
};

}  // namespace penstock::io
