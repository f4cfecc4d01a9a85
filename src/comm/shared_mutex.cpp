// pthread mutexes, robust and shared between processes: the kernel passes the lock of a process
// that died on, and no waiter needs MPI.
#include "comm/shared_mutex.hpp"

#include <pthread.h>

#include <cerrno>
#include <utility>

#include "comm/shared_segment.hpp"

namespace penstock::comm {
namespace {

class SharedMutex final : public NodeLock {
 public:
  explicit SharedMutex(std::shared_ptr<SharedSegment> segment) : segment_(std::move(segment)) {}

  Result<void> initialise() {
    pthread_mutexattr_t attributes;
    int rc = ::pthread_mutexattr_init(&attributes);
    if (rc == 0) {
      rc = ::pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
      if (rc == 0) rc = ::pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
      if (rc == 0) rc = ::pthread_mutex_init(mutex(), &attributes);
      ::pthread_mutexattr_destroy(&attributes);
    }
    if (rc != 0) return os_error("pthread_mutex_init", "the lock of this node's ranks", rc);
    return {};
  }

  Result<void> enter() override {
    int rc = ::pthread_mutex_lock(mutex());
    // The holder died inside. It guarded turns, not data: there is nothing to repair.
    if (rc == EOWNERDEAD) rc = ::pthread_mutex_consistent(mutex());
    if (rc != 0) return os_error("pthread_mutex_lock", "the lock of this node's ranks", rc);
    return {};
  }
  void leave() noexcept override { ::pthread_mutex_unlock(mutex()); }

 private:
  pthread_mutex_t* mutex() const noexcept {
    return reinterpret_cast<pthread_mutex_t*>(segment_->memory().data());
  }

  std::shared_ptr<SharedSegment> segment_;
};

}  // namespace

Result<std::shared_ptr<NodeLock>> make_shared_mutex(const std::string& name) {
  auto segment = make_segment(name, sizeof(pthread_mutex_t));
  if (!segment) return tl::unexpected(std::move(segment).error());
  auto lock = std::make_shared<SharedMutex>(*std::move(segment));
  if (Result<void> ready = lock->initialise(); !ready) {
    forget_segment_name(name);
    return tl::unexpected(std::move(ready).error());
  }
  return lock;
}

Result<std::shared_ptr<NodeLock>> open_shared_mutex(const std::string& name) {
  auto segment = open_segment(name, sizeof(pthread_mutex_t));
  if (!segment) return tl::unexpected(std::move(segment).error());
  return std::make_shared<SharedMutex>(*std::move(segment));
}

}  // namespace penstock::comm
