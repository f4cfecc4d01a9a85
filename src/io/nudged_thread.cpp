#include "io/nudged_thread.hpp"

#include <utility>

namespace penstock::io {

bool NudgedThread::nudge() {
  const std::lock_guard lock(mutex_);
  if (!thread_ && !why_none_ && !stop_) {
    const Result<pthread_t> started = start_(&run, this);
    if (started)
      thread_ = *started;
    else
      why_none_ = started.error();
  }
  if (!thread_) return false;
  nudged_ = true;
  wake_.notify_one();
  return true;
}

std::optional<Error> NudgedThread::why_none() const {
  const std::lock_guard lock(mutex_);
  return why_none_;
}

void NudgedThread::stop() {
  std::optional<pthread_t> thread;
  {
    const std::lock_guard lock(mutex_);
    thread = std::exchange(thread_, std::nullopt);
    stop_ = true;
    wake_.notify_one();
  }
  if (thread) ::pthread_join(*thread, nullptr);
}

void* NudgedThread::run(void* self) {
  auto& thread = *static_cast<NudgedThread*>(self);
  while (thread.await_nudge()) thread.work_();
  return nullptr;
}

bool NudgedThread::await_nudge() {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return nudged_ || stop_; });
  nudged_ = false;
  return !stop_;
}

}  // namespace penstock::io
