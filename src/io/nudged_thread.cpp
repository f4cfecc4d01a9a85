#include "io/nudged_thread.hpp"

#include <chrono>
#include <utility>

namespace penstock::io {
namespace {

constexpr std::chrono::seconds kIdle{1};

}  // namespace

bool NudgedThread::nudge() {
  const std::lock_guard lock(mutex_);
  join_if_it_rests();
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

// It has let the mutex go for good, and returns.
void NudgedThread::join_if_it_rests() {
  if (!std::exchange(rests_, false)) return;
  ::pthread_join(*std::exchange(thread_, std::nullopt), nullptr);
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
    rests_ = false;
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
  // By the wall's clock: to wait by the other one takes a C library of 2019.
  const auto end = std::chrono::system_clock::now() + kIdle;
  if (!wake_.wait_until(lock, end, [this] { return nudged_ || stop_; })) {
    rests_ = true;
    return false;
  }
  nudged_ = false;
  return !stop_;
}

}  // namespace penstock::io
