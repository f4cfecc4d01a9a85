// anticipate=BYTES: as stream, while the program is one that syncs its files, for what lies in
// runs.
#include "io/stream_sync.hpp"

namespace penstock::io {

const SyncPolicy& anticipate_sync_policy() {
  static const SyncPolicy p{
      .name = "anticipate",
      .summary =
          "as stream, for runs of 16 KiB and more, where the program syncs its files; else as none",
      .takes_bytes = true,
      .open = [](MechanismFile& file, const SyncRequest& r) -> std::unique_ptr<FileSync> {
        return std::make_unique<StreamSync>(file, r.bytes, StreamSync::Streams::if_it_syncs);
      }};
  return p;
}

}  // namespace penstock::io
