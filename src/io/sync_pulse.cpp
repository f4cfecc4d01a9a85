// pulse=BYTES: the fsync pulse of gotwals-1995 (figure 8, 3 MB per process): every writer stops at
// each multiple of BYTES of what it writes and goes on when the device has it all, so that buffer
// memory never holds more than a pulse and each output cycle begins with it empty.
//
// Writers pulse together without a word between them: the points are multiples and not distances
// from the last sync, so writers that write equal amounts pass them in the same cycle of a
// collective write, and how their writes are cut makes no difference. fsync, not fdatasync: the
// pulse is there to leave nothing behind, and the time stamps' block is dirty memory as well.
#include "io/periodic_sync.hpp"

namespace penstock::io {

const SyncPolicy& pulse_sync_policy() {
  static const SyncPolicy p{
      .name = "pulse",
      .summary = "fsync at each multiple of so many bytes of a writer, so that all drain at once",
      .pushes = true,
      .takes_bytes = true,
      .open = [](MechanismFile& file, const SyncRequest& r) -> std::unique_ptr<FileSync> {
        return std::make_unique<PeriodicSync>(file, r.bytes, nullptr, Beat::in_step,
                                              SyncKind::full);
      }};
  return p;
}

}  // namespace penstock::io
