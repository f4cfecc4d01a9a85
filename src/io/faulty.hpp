// FaultyFile: any mechanism's file, failing on purpose. For tests of what is above: the n-th write
// fails or a certain byte cannot be written, sync fails, close fails.
#pragma once

#include <atomic>
#include <deque>
#include <limits>
#include <memory>
#include <vector>

#include "io/forwarding_file.hpp"

namespace penstock::io {

struct FaultPlan {
  // Writes are counted from 1: each dirty extent and each write(). 0: none fails by its number.
  int nth_write = 0;
  // The write that touches this file byte fails, and everything before the byte enters the file.
  Off at_offset = std::numeric_limits<Off>::max();
  // How much of the failing n-th write enters the file.
  int64_t bytes_before_fault = 0;
  int write_errno = 0;  // 0: writes do not fail
  int sync_errno = 0;   // 0: sync does not fail
  int nth_sync = 0;     // the sync that fails, counted from 1; 0: each
  int close_errno = 0;  // 0: close does not fail; the file is closed in any case
};

class FaultyFile final : public ForwardingFile {
 public:
  FaultyFile(std::unique_ptr<MechanismFile> inner, const FaultPlan& plan)
      : ForwardingFile(std::move(inner)), plan_(plan) {}

  void submit(Lease lease, std::span<const Extent> dirty) override;
  std::optional<Fault> reap() override;
  std::optional<Fault> write(std::span<const std::byte> bytes, Off offset) override;
  Result<void> sync(SyncKind kind) override;
  Result<void> close() override;

 private:
  struct Submission {
    bool passed_on;              // something of it was submitted to the inner file
    std::optional<Fault> fault;  // ours, behind all that was passed on
  };

  // The first byte of `e`, the next write, that must not enter the file; e.end: it succeeds.
  Off first_refused(Extent e);
  Fault fault_at(Off offset) const;

  FaultPlan plan_;
  std::atomic<int> writes_ = 0, syncs_ = 0;
  bool closed_ = false;
  std::deque<Submission> submitted_;
};

}  // namespace penstock::io
