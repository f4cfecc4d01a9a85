// The list of sync policies.
#include "io/sync_policy.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "io/descriptor.hpp"

namespace penstock::io {

Result<bool> FileSync::wrote(Extent, int64_t) { return false; }
Result<void> FileSync::sync_now(SyncKind kind) { return sync_file(kind); }
Result<void> FileSync::sync_at_close() { return {}; }
void FileSync::note_asked() {}
SyncNotes FileSync::notes() const { return {}; }

SyncMarks FileSync::marks() const {
  const std::lock_guard lock(marks_mutex_);
  return marks_;
}

Result<void> FileSync::sync_file(SyncKind kind) {
  int64_t number = 0;
  {
    const std::lock_guard lock(marks_mutex_);
    number = ++marks_.begun;
  }
  Result<void> synced = file_.sync(kind);
  if (!synced) return synced;
  const std::lock_guard lock(marks_mutex_);
  marks_.good = std::max(marks_.good, number);
  return synced;
}

void FileSync::note_failure(const Error& error) {
  failure_.remember(error);
  const std::lock_guard lock(marks_mutex_);
  ++marks_.failures;
  marks_.good_before_failure = marks_.good;
}

Result<void> FileSync::sync(SyncKind kind) {
  Result<void> synced = sync_unasked(kind);
  note_asked();
  return synced;
}

Result<void> FileSync::sync_unasked(SyncKind kind) {
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
