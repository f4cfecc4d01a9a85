// A sync whenever this writer has written so many bytes since the last one; benson-2003's syncsize.
// At close what is left.
#pragma once

#include <mutex>
#include <optional>

#include "io/sync_policy.hpp"

namespace penstock::io {

// Without a gate writers sync when they like, with one those that share it take turns, at close and
// when the program asks too. A periodic sync that failed is reported by wrote() and, since what was
// lost then stays lost, by every sync() and at_close() after it.
class PeriodicSync final : public FileSync {
 public:
  // REQUIRES every_bytes > 0.
  PeriodicSync(MechanismFile& file, int64_t every_bytes, std::shared_ptr<Gate> gate);

  Result<bool> wrote(int64_t bytes) override;
  Result<void> sync(SyncKind kind) override;
  Result<void> at_close() override;

 private:
  bool due(int64_t bytes);
  Result<void> push(SyncKind kind);
  void remember(const Error& error);
  Result<void> all_of_them(Result<void> now) const;

  const int64_t every_bytes_;
  const std::shared_ptr<Gate> gate_;
  mutable std::mutex mutex_;      // held for no longer than it takes to count
  int64_t unsynced_bytes_ = 0;    // since the last periodic sync began
  std::optional<Error> failure_;  // the first of a periodic sync
};

}  // namespace penstock::io
