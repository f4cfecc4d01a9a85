// Counting under a lock, syncing without it: a thread that only counts never waits for the device.
#include "io/periodic_sync.hpp"

#include <cassert>
#include <utility>

#include "base/units.hpp"

namespace penstock::io {

PeriodicSync::PeriodicSync(MechanismFile& file, int64_t every_bytes, std::shared_ptr<Gate> gate)
    : FileSync(file), every_bytes_(every_bytes), gate_(std::move(gate)) {
  assert(every_bytes > 0);
}

Result<bool> PeriodicSync::wrote(int64_t bytes) {
  if (!due(bytes)) return false;
  Result<void> pushed = push(SyncKind::data);
  if (pushed) return true;
  pushed.error().detail += ", the sync after every " + format_size(every_bytes_);
  remember(pushed.error());
  return tl::unexpected(std::move(pushed).error());
}

Result<void> PeriodicSync::sync(SyncKind kind) { return all_of_them(push(kind)); }
Result<void> PeriodicSync::at_close() { return all_of_them(push(SyncKind::full)); }

bool PeriodicSync::due(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  unsynced_bytes_ += bytes;
  if (unsynced_bytes_ < every_bytes_) return false;
  unsynced_bytes_ = 0;
  return true;
}

Result<void> PeriodicSync::push(SyncKind kind) {
  if (gate_ == nullptr) return file_.sync(kind);
  if (Result<void> entered = gate_->enter(); !entered) return entered;
  Result<void> synced = file_.sync(kind);
  gate_->leave();
  return synced;
}

void PeriodicSync::remember(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = error;
}

// A sync that succeeds now says nothing of pages that an earlier one has lost.
Result<void> PeriodicSync::all_of_them(Result<void> now) const {
  const std::lock_guard lock(mutex_);
  if (failure_) return tl::unexpected(*failure_);
  return now;
}

}  // namespace penstock::io
