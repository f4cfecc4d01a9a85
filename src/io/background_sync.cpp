// One lock for the device, one for what is known: writers take the second alone.
#include "io/background_sync.hpp"

#include <utility>

#include "base/units.hpp"

namespace penstock::io {

// --- Writers ---

// What it tells was known before the thread hears of these bytes, or is its own.
Result<bool> BackgroundSync::wrote(Extent, int64_t bytes) {
  std::optional<Error> failed = take_untold();
  const bool here = due_bytes_.add(bytes) && !thread_.nudge();
  const bool synced = here && push();
  if (here && !failed) failed = take_untold();
  if (failed) return tl::unexpected(*std::move(failed));
  return synced;
}

std::optional<Error> BackgroundSync::take_untold() {
  const std::lock_guard lock(mutex_);
  return std::exchange(untold_, std::nullopt);
}

// --- The thread ---

void BackgroundSync::sync_behind() {
  if (!push()) return;
  const std::lock_guard lock(mutex_);
  ++syncs_;
}

bool BackgroundSync::push() {
  const std::lock_guard device(device_);
  Result<void> pushed = sync_file(SyncKind::data);
  if (pushed) return true;
  if (has_no_sync(pushed.error())) return false;
  pushed.error().detail +=
      ", the sync in the background after every " + format_size(due_bytes_.every_bytes());
  note_failure(pushed.error());
  const std::lock_guard lock(mutex_);
  untold_ = std::move(pushed).error();
  return false;
}

// --- The program ---

Result<void> BackgroundSync::sync_now(SyncKind kind) {
  Result<void> synced = sync_file(kind);
  take_untold();  // told now
  return synced;
}

// What became due and was not begun with is left to this sync.
Result<void> BackgroundSync::sync_at_close() {
  thread_.stop();
  return sync_now(SyncKind::full);
}

SyncNotes BackgroundSync::notes() const {
  const std::optional<Error> why_none = thread_.why_none();
  const std::lock_guard lock(mutex_);
  if (!why_none) return {syncs_, ""};
  return {syncs_, "background: its thread could not be started, so writers sync themselves: " +
                      why_none->message()};
}

}  // namespace penstock::io
