#include "comm/node_lock.hpp"

#include <mutex>

namespace penstock::comm {
namespace {

class ThreadLock final : public NodeLock {
 public:
  Result<void> enter() override {
    mutex_.lock();
    return {};
  }
  void leave() noexcept override { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

}  // namespace

std::shared_ptr<NodeLock> make_thread_lock() { return std::make_shared<ThreadLock>(); }

}  // namespace penstock::comm
