// none: nothing beyond what the program asks for. The default, because an fsync that nobody asked
// for costs what the device costs.
#include "io/sync_policy.hpp"

namespace penstock::io {

const SyncPolicy& none_sync_policy() {
  static const SyncPolicy p{.name = "none",
                            .summary = "only what the program asks for",
                            .open = [](MechanismFile& file, const SyncRequest&) {
                              return std::make_unique<FileSync>(file);
                            }};
  return p;
}

}  // namespace penstock::io
