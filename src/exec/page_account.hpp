// What became of a writer's pages in one collective call: counts, faults, syncs. By whoever writes
// them: the rank itself, or the I/O thread; one of them at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "exec/intact.hpp"
#include "exec/pipeline.hpp"
#include "io/mechanism.hpp"
#include "io/sync_policy.hpp"

namespace penstock::exec {

class PageAccount {
 public:
  // Both may be nullptr.
  PageAccount(Spent& spent, io::FileSync* sync) : spent_(spent), sync_(sync) {}

  // The page of a cycle has been written, but for the fault. In the order of the cycles. `synced`:
  // what the sync policy said to it, where it has been told already.
  // false: the sync policy's sync failed.
  bool settle(int cycle, Extent where, std::span<const Extent> dirty,
              const std::optional<io::Fault>& fault,
              const std::optional<Result<bool>>& synced = std::nullopt);
  // Pages until this cycle had begun to enter the file when that sync failed, so no byte of them is
  // certain to be there.
  void lose_through(int cycle) noexcept { lost_through_ = std::max(lost_through_, cycle); }
  // Of a page whose first byte is `first` not all could be written.
  void note_fault(int cycle, Off first, const io::Fault& fault);

  const std::optional<Error>& failure() const noexcept { return failure_; }
  std::span<const WriterFault> faults() const noexcept { return faults_; }
  int64_t written_bytes() const noexcept { return written_; }

 private:
  // `before`: the cycle that it was told of before this one.
  bool follow(int cycle, int before, std::span<const Extent> dirty, int64_t bytes,
              const std::optional<Result<bool>>& synced);
  bool is_lost(int cycle) const noexcept { return cycle <= lost_through_; }
  Result<bool> push(std::span<const Extent> dirty, int64_t bytes);
  void fail_with(const Error& error);

  Spent& spent_;
  io::FileSync* sync_;
  std::optional<Error> failure_;
  std::vector<WriterFault> faults_;
  int64_t written_ = 0;
  int told_ = -1;          // the last cycle that it was told of
  int lost_through_ = -1;  // whatever is said of pages until this cycle
  // What was written since the policy's last sync: from this cycle and file byte on.
  struct Unsynced {
    int cycle;
    int before;  // the cycle that it was told of before that
    Off begin;
    int64_t bytes;
  };
  std::optional<Unsynced> unsynced_;
};

}  // namespace penstock::exec
