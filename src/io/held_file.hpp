// For tests: a mechanism's file whose writes wait until they are let go. What a test then sees it
// sees while a write is under way, whatever the machine is doing.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "io/forwarding_file.hpp"

namespace penstock::io {

class Hold {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_ || let_go_ > passed_; });
    --waiting_;
    ++passed_;
    changed_.notify_all();
  }
  void let_go(int writes = 1) {
    const std::lock_guard lock(mutex_);
    let_go_ += writes;
    changed_.notify_all();
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void wait_until_someone_waits() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_ > 0; });
  }
  int passed() const {
    const std::lock_guard lock(mutex_);
    return passed_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0, passed_ = 0, let_go_ = 0;
  bool open_ = false;
};

// Holds write() alone: what the I/O thread calls. Leases go on.
class HeldFile final : public ForwardingFile {
 public:
  // `hold` must outlive it.
  HeldFile(std::unique_ptr<MechanismFile> inner, Hold& hold)
      : ForwardingFile(std::move(inner)), hold_(hold) {}

  std::optional<Fault> write(std::span<const std::byte> bytes, Off offset) override {
    hold_.pass();
    return inner().write(bytes, offset);
  }

 private:
  Hold& hold_;
};

}  // namespace penstock::io
