// A thread that is not cancelled for a while.
#pragma once

#include <pthread.h>

namespace penstock {

// While it lives this thread is not cancelled (pthread_cancel): it would leave files half written
// and others waiting, and to unwind it through C++ that catches ends the process.
class NotCancelled {
 public:
  NotCancelled() noexcept { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NotCancelled() { ::pthread_setcancelstate(before_, nullptr); }
  NotCancelled(const NotCancelled&) = delete;
  NotCancelled& operator=(const NotCancelled&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace penstock
