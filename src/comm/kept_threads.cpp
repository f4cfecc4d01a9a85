#include "comm/kept_threads.hpp"

#include <unistd.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace penstock::comm {
namespace {

// More than so many are ended when their work is done.
constexpr size_t kKept = 64;

class Worker {
 public:
  Worker() : thread_([this](const std::stop_token& stop) { loop(stop); }) {}

  void begin(const std::function<void(int)>& body, int number) {
    {
      const std::lock_guard lock(mutex_);
      number_ = number;
      body_ = &body;
    }
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return body_ == nullptr; });
  }

 private:
  void loop(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [this] { return body_ != nullptr; })) {
      lock.unlock();
      (*body_)(number_);
      lock.lock();
      body_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  const std::function<void(int)>* body_ = nullptr;  // while there is work
  int number_ = 0;
  std::jthread thread_;  // last: it uses the others
};

using Workers = std::vector<std::unique_ptr<Worker>>;

// Those without work. Never destroyed: a process ends without waiting for them.
class Idle {
 public:
  static Idle& of_this_process() {
    static Idle* idle = new Idle;
    if (idle->process_ != ::getpid()) idle = new Idle;  // a fork has none of its parent's threads
    return *idle;
  }

  Workers take(int count) {
    Workers taken;
    const std::lock_guard lock(mutex_);
    for (; count > 0 && !workers_.empty(); --count) {
      taken.push_back(std::move(workers_.back()));
      workers_.pop_back();
    }
    for (; count > 0; --count) taken.push_back(std::make_unique<Worker>());
    return taken;
  }
  void give_back(Workers&& workers) {
    const std::lock_guard lock(mutex_);
    for (auto& worker : workers)
      if (workers_.size() < kKept) workers_.push_back(std::move(worker));
  }

 private:
  const pid_t process_ = ::getpid();
  std::mutex mutex_;
  Workers workers_;
};

}  // namespace

void run_on_threads(int count, const std::function<void(int)>& body) {
  Idle& idle = Idle::of_this_process();
  Workers workers = idle.take(count);
  for (int i = 0; i < count; ++i) workers[size_t(i)]->begin(body, i);
  for (const auto& worker : workers) worker->wait();
  idle.give_back(std::move(workers));
}

}  // namespace penstock::comm
