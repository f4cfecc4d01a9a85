#include "exec/page_account.hpp"

#include <algorithm>

#include "base/clock.hpp"

namespace penstock::exec {
namespace {

int64_t in_file(Extent where, std::span<const Extent> dirty,
                const std::optional<io::Fault>& fault) {
  const Off end = fault ? fault->first_missing : where.end;
  int64_t bytes = 0;
  for (const Extent e : dirty) bytes += std::max<int64_t>(0, std::min(e.end, end) - e.begin);
  return bytes;
}

}  // namespace

bool PageAccount::settle(int cycle, Extent where, std::span<const Extent> dirty,
                         const std::optional<io::Fault>& fault,
                         const std::optional<Result<bool>>& synced) {
  const int before = told_;
  const Off first = dirty.empty() ? where.begin : dirty.front().begin;
  const int64_t bytes = in_file(where, dirty, fault);
  if (fault) fail_with(fault->error);
  if (is_lost(cycle)) {
    join(faults_, {cycle, cycle + 1, first}, before, true);
  } else {
    if (fault) note_fault(cycle, first, *fault);
    written_ += bytes;
  }
  told_ = cycle;
  return bytes == 0 || follow(cycle, before, dirty, bytes, synced);
}

// Tells the sync policy what a page brought into the file. When the sync fails that it asks for, no
// byte of this call since the last one is certain to be in the file.
bool PageAccount::follow(int cycle, int before, std::span<const Extent> dirty, int64_t bytes,
                         const std::optional<Result<bool>>& synced) {
  if (sync_ == nullptr) return true;
  if (!unsynced_) unsynced_ = {cycle, before, dirty.front().begin, 0};
  if (!is_lost(cycle)) unsynced_->bytes += bytes;
  const Result<bool> pushed = synced ? *synced : push(dirty, bytes);
  if (pushed && !*pushed) return true;
  if (pushed) {
    ++spent_.traffic.syncs;
  } else {
    fail_with(pushed.error());
    if (unsynced_->bytes > 0)  // else all of it is noted
      join(faults_, {unsynced_->cycle, cycle + 1, unsynced_->begin}, unsynced_->before, true);
    written_ -= unsynced_->bytes;
  }
  unsynced_.reset();
  return pushed.has_value();
}

Result<bool> PageAccount::push(std::span<const Extent> dirty, int64_t bytes) {
  const Stopwatch watch(spent_.times.sync_s);
  return sync_->wrote({dirty.front().begin, dirty.back().end}, bytes);
}

void PageAccount::fail_with(const Error& error) {
  if (!failure_ || failure_->error_class < error.error_class) failure_ = error;
}

void PageAccount::note_fault(int cycle, Off first, const io::Fault& fault) {
  fail_with(fault.error);
  join(faults_, {cycle, cycle + 1, fault.first_missing}, told_, fault.first_missing <= first);
  told_ = cycle;
}

}  // namespace penstock::exec
