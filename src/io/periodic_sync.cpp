// Counting under a lock, syncing without it: a thread that only counts never waits for the device.
#include "io/periodic_sync.hpp"

#include <utility>

#include "base/units.hpp"

namespace penstock::io {

PeriodicSync::PeriodicSync(MechanismFile& file, int64_t every_bytes, std::shared_ptr<Gate> gate,
                           Beat beat, SyncKind kind)
    : FileSync(file), gate_(std::move(gate)), kind_(kind), due_(every_bytes, beat) {}

Result<bool> PeriodicSync::wrote(Extent, int64_t bytes) {
  if (!due_.add(bytes)) return false;
  const std::lock_guard device(device_);
  Result<void> pushed = sync_now(kind_);
  if (pushed) return true;
  if (has_no_sync(pushed.error())) return false;
  pushed.error().detail += ", the sync after every " + format_size(due_.every_bytes());
  note_failure(pushed.error());
  return tl::unexpected(std::move(pushed).error());
}

Result<void> PeriodicSync::sync_now(SyncKind kind) {
  if (gate_ == nullptr) return sync_file(kind);
  if (Result<void> entered = gate_->enter(); !entered) return entered;
  Result<void> synced = sync_file(kind);
  gate_->leave();
  return synced;
}

}  // namespace penstock::io
