// For tests: a mechanism's file that counts its syncs, and how many of all that share a record are
// under way at a time.
#pragma once

#include <sched.h>

#include <atomic>
#include <memory>

#include "io/mechanism.hpp"

namespace penstock::io {

// Lock-free atomics only, so that it may lie in memory that processes share.
struct SyncRecord {
  std::atomic<int> data = 0, full = 0;  // fdatasync, fsync
  std::atomic<int> inside = 0;
  std::atomic<bool> crowded = false;  // two at a time were seen
};

class RecordingFile final : public MechanismFile {
 public:
  // `record` must outlive it.
  RecordingFile(std::unique_ptr<MechanismFile> inner, SyncRecord& record)
      : inner_(std::move(inner)), record_(record) {}

  Result<Lease> lease(Extent where) override { return inner_->lease(where); }
  void submit(Lease lease, std::span<const Extent> dirty) override { inner_->submit(lease, dirty); }
  std::optional<Fault> reap() override { return inner_->reap(); }
  int slots() const noexcept override { return inner_->slots(); }
  std::optional<Fault> write(std::span<const std::byte> bytes, Off offset) override {
    return inner_->write(bytes, offset);
  }
  Result<void> sync(SyncKind kind) override {
    ++(kind == SyncKind::data ? record_.data : record_.full);
    if (++record_.inside > 1) record_.crowded = true;
    for (int i = 0; i < 20; ++i) ::sched_yield();  // long enough to be seen by another
    Result<void> synced = inner_->sync(kind);
    --record_.inside;
    return synced;
  }
  Result<void> close() override { return inner_->close(); }
  int fd() const noexcept override { return inner_->fd(); }

 private:
  std::unique_ptr<MechanismFile> inner_;
  SyncRecord& record_;
};

}  // namespace penstock::io
