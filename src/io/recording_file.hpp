// For tests: a mechanism's file that counts its syncs, and how many of all that share a record are
// under way at a time.
#pragma once

#include <sched.h>

#include <atomic>
#include <memory>

#include "io/forwarding_file.hpp"

namespace penstock::io {

// Lock-free atomics only, so that it may lie in memory that processes share.
struct SyncRecord {
  std::atomic<int> data = 0, full = 0;  // fdatasync, fsync
  std::atomic<int> inside = 0;
  std::atomic<bool> crowded = false;  // two at a time were seen
  std::atomic<bool> late = false;     // one was not over when its file was closed
};

class RecordingFile : public ForwardingFile {
 public:
  // `record` must outlive it.
  RecordingFile(std::unique_ptr<MechanismFile> inner, SyncRecord& record)
      : ForwardingFile(std::move(inner)), record_(record) {}

  Result<void> sync(SyncKind kind) override {
    ++here_;
    if (closed_) record_.late = true;
    ++(kind == SyncKind::data ? record_.data : record_.full);
    if (++record_.inside > 1) record_.crowded = true;
    for (int i = 0; i < 20; ++i) ::sched_yield();  // long enough to be seen by another
    Result<void> synced = inner().sync(kind);
    --record_.inside;
    --here_;
    return synced;
  }
  Result<void> close() override {
    closed_ = true;
    if (here_ > 0) record_.late = true;
    return inner().close();
  }

 private:
  SyncRecord& record_;
  std::atomic<int> here_ = 0;  // syncs of this file under way
  std::atomic<bool> closed_ = false;
};

}  // namespace penstock::io
