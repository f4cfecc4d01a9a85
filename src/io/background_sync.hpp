// fdatasync by a thread of its own, so that no writer waits for the device; benson-2003's S5, whose
// sync thread is told when the sync size is reached.
#pragma once

#include <mutex>
#include <optional>

#include "io/nudged_thread.hpp"
#include "io/sync_count.hpp"
#include "io/sync_policy.hpp"

namespace penstock::io {

// The thread starts at the first write that is due and ends in at_close(), or when this is
// destroyed. While it is syncing any number of writes may become due; one sync follows for them
// all. A failure is reported by the next wrote(), once, unless sync() was first.
class BackgroundSync final : public FileSync {
 public:
  // REQUIRES every_bytes > 0. `start`: for tests.
  BackgroundSync(MechanismFile& file, int64_t every_bytes, StartThread start = &start_io_thread)
      : FileSync(file), due_bytes_(every_bytes), thread_([this] { sync_behind(); }, start) {}
  ~BackgroundSync() override { thread_.stop(); }  // before what it uses goes

  // Waits only where there is no thread.
  Result<bool> wrote(Extent where, int64_t bytes) override;
  SyncNotes notes() const override;

 protected:
  Result<void> sync_now(SyncKind kind) override;
  Result<void> sync_at_close() override;

 private:
  void sync_behind();
  bool push();
  std::optional<Error> take_untold();

  DueBytes due_bytes_;
  // Of what follows; taken behind device_, and held for no longer than it takes to look.
  mutable std::mutex mutex_;
  int64_t syncs_ = 0;            // of the thread, that succeeded
  std::optional<Error> untold_;  // a failure that nobody was told yet

  NudgedThread thread_;
};

}  // namespace penstock::io
