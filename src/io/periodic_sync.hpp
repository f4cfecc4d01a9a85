// A sync whenever this writer has written so many bytes; benson-2003's syncsize, and the fsync
// pulse of gotwals-1995. At close what is left.
#pragma once

#include <memory>

#include "io/sync_count.hpp"
#include "io/sync_policy.hpp"

namespace penstock::io {

// Without a gate writers sync when they like, with one those that share it take turns, at close and
// when the program asks too. A periodic sync that failed is reported by wrote() as well.
class PeriodicSync final : public FileSync {
 public:
  // REQUIRES every_bytes > 0.
  PeriodicSync(MechanismFile& file, int64_t every_bytes, std::shared_ptr<Gate> gate,
               Beat beat = Beat::anew, SyncKind kind = SyncKind::data);

  Result<bool> wrote(Extent where, int64_t bytes) override;

 protected:
  Result<void> sync_now(SyncKind kind) override;
  Result<void> sync_at_close() override { return sync_now(SyncKind::full); }

 private:
  const std::shared_ptr<Gate> gate_;
  const SyncKind kind_;
  DueBytes due_;
};

}  // namespace penstock::io
