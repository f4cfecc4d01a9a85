// stream=BYTES: a thread starts write-back whenever a writer has written so many bytes.
#include "io/stream_sync.hpp"

namespace penstock::io {

const SyncPolicy& stream_sync_policy() {
  static const SyncPolicy p{
      .name = "stream",
      .summary = "starts write-back behind the writers, whenever one has written so many bytes",
      .takes_bytes = true,
      .open = [](MechanismFile& file, const SyncRequest& r) -> std::unique_ptr<FileSync> {
        return std::make_unique<StreamSync>(file, r.bytes, StreamSync::Streams::always);
      }};
  return p;
}

}  // namespace penstock::io
