// The list of sync policies.
#include "io/sync_policy.hpp"

#include <array>
#include <cerrno>
#include <utility>

#include "io/descriptor.hpp"

namespace penstock::io {

Result<bool> FileSync::wrote(Extent, int64_t) { return false; }
Result<void> FileSync::sync_now(SyncKind kind) { return file_.sync(kind); }
Result<void> FileSync::sync_at_close() { return {}; }
SyncNotes FileSync::notes() const { return {}; }

Result<void> FileSync::sync(SyncKind kind) {
  const std::lock_guard device(device_);
  return kept(sync_now(kind));
}

Result<bool> FileSync::at_close() {
  Result<void> now = sync_at_close();
  const bool has_none = !now && has_no_sync(now.error());
  Result<void> all = kept(has_none ? Result<void>() : std::move(now));
  if (!all) return tl::unexpected(std::move(all).error());
  return !has_none;
}

bool FileSync::has_no_sync(const Error& error) const noexcept {
  return error.sys_errno == EINVAL && !is_regular_file(file_.fd());
}

Result<void> FileSync::kept(Result<void> now) {
  if (!now && has_no_sync(now.error())) return now;
  if (!now) failure_.remember(now.error());
  return failure_.all_of_them(std::move(now));
}

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
