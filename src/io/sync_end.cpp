// end: fsync before the file is closed, so that close reports what the device says.
#include "io/sync_policy.hpp"

namespace penstock::io {

const SyncPolicy& end_sync_policy() {
  static const SyncPolicy p{
      .name = "end",
      .summary = "fsync once, at close",
      .pushes = true,
      .at_close = [](MechanismFile& file) { return file.sync(SyncKind::full); }};
  return p;
}

}  // namespace penstock::io
