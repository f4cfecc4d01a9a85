// every=BYTES: each writer syncs by itself whenever it has written that much (benson-2003, S1A).
// fdatasync, not fsync: both wait until the bytes and what is needed to read them back are on the
// device, but only fsync writes the time stamps too, a journal transaction for each sync.
#include "io/periodic_sync.hpp"

namespace penstock::io {

const SyncPolicy& every_sync_policy() {
  static const SyncPolicy p{
      .name = "every",
      .summary = "fdatasync whenever a writer has written so many bytes, fsync at close",
      .pushes = true,
      .takes_bytes = true,
      .open = [](MechanismFile& file, const SyncRequest& r) -> std::unique_ptr<FileSync> {
        return std::make_unique<PeriodicSync>(file, r.bytes, nullptr);
      }};
  return p;
}

}  // namespace penstock::io
