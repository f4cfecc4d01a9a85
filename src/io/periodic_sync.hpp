// A sync whenever this writer has written so many bytes; benson-2003's syncsize, and the fsync
// pulse of gotwals-1995. At close what is left.
#pragma once

#include <memory>

#include "io/sync_count.hpp"
#include "io/sync_policy.hpp"

namespace penstock::io {

// Without a gate writers sync when they like, with one those that share it take turns, at close and
// when the program asks too. A periodic sync that failed is reported by wrote() and, since what was
// lost then stays lost, by every sync() and at_close() after it.
class PeriodicSync final : public FileSync {
 public:
  // REQUIRES every_bytes > 0.
  PeriodicSync(MechanismFile& file, int64_t every_bytes, std::shared_ptr<Gate> gate,
               Beat beat = Beat::anew, SyncKind kind = SyncKind::data);

  Result<bool> wrote(Extent where, int64_t bytes) override;
  Result<void> sync(SyncKind kind) override;
  Result<void> at_close() override;

 private:
  Result<void> push(SyncKind kind);

  const std::shared_ptr<Gate> gate_;
  const SyncKind kind_;
  DueBytes due_;
  FirstFailure failure_;  // of a periodic sync
};

}  // namespace penstock::io
