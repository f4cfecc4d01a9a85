// coordinated=BYTES: as every=BYTES, but one sync at a time on a node (benson-2003, S1B).
#include "io/periodic_sync.hpp"

namespace penstock::io {

const SyncPolicy& coordinated_sync_policy() {
  static const SyncPolicy p{
      .name = "coordinated",
      .summary = "as every, but one sync at a time on a node",
      .pushes = true,
      .takes_bytes = true,
      .takes_turns = true,
      .open = [](MechanismFile& file, const SyncRequest& r) -> std::unique_ptr<FileSync> {
        return std::make_unique<PeriodicSync>(file, r.bytes, r.gate);
      }};
  return p;
}

}  // namespace penstock::io
