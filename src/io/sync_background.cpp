// background=BYTES: a thread per open file syncs behind the writers (benson-2003, S5).
#include "io/background_sync.hpp"

namespace penstock::io {

const SyncPolicy& background_sync_policy() {
  static const SyncPolicy p{
      .name = "background",
      .summary = "fdatasync by a thread of its own, told of every so many bytes; fsync at close",
      .pushes = true,
      .takes_bytes = true,
      .open = [](MechanismFile& file, const SyncRequest& r) -> std::unique_ptr<FileSync> {
        return std::make_unique<BackgroundSync>(file, r.bytes);
      }};
  return p;
}

}  // namespace penstock::io
