// The list of sync policies.
#include "io/sync_policy.hpp"

#include <array>

namespace penstock::io {

Result<bool> FileSync::wrote(Extent, int64_t) { return false; }
Result<void> FileSync::sync(SyncKind kind) { return file_.sync(kind); }
Result<void> FileSync::at_close() { return {}; }
SyncNotes FileSync::notes() const { return {}; }

#define PENSTOCK_SYNC_POLICY(name) const SyncPolicy& name##_sync_policy();
#include "io/sync_policies.def"
#undef PENSTOCK_SYNC_POLICY

std::span<const SyncPolicy* const> sync_policies() {
  static const std::array kAll = {
#define PENSTOCK_SYNC_POLICY(name) &name##_sync_policy(),
#include "io/sync_policies.def"
#undef PENSTOCK_SYNC_POLICY
  };
  return kAll;
}

const SyncPolicy* find_sync_policy(std::string_view name) {
  for (const SyncPolicy* p : sync_policies())
    if (p->name == name) return p;
  return nullptr;
}

}  // namespace penstock::io
