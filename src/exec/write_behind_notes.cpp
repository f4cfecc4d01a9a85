// What a handle says of the bytes that it took: accepted, in the file, lost.
#include <algorithm>
#include <mutex>

#include "exec/write_behind.hpp"

namespace penstock::exec {

// Whose bytes a page had lost is not known: each handle takes them all for its
// own, rather than count one that is not in the file.
int64_t WriteBehind::written_beside_others(const StagedNotes& own, bool settled) const {
  if (!settled) return std::max<int64_t>(0, std::min(own.written_bytes, own.accepted_bytes));
  return std::max<int64_t>(0, own.accepted_bytes - pool_->losses().bytes());
}

void WriteBehind::note_written(const Target& target, const WriteOutcome& outcome, Extent where,
                               int64_t writes) {
  {
    const std::lock_guard lock(mutex_);
    notes_.accepted_bytes += outcome.written_bytes;
    notes_.written_bytes += outcome.written_bytes;
  }
  if (target.sync == nullptr) return;
  const io::SyncMarks marks = target.sync->marks();
  // What was before the write is on the device.
  if (outcome.synced_bytes > 0) since_sync_.synced(writes, marks, outcome.sync_failed);
  if (outcome.sync_failed) return lose(since_sync_.take(marks), 0, *outcome.mine);
  since_sync_.wrote(where, outcome.written_bytes - outcome.synced_bytes, marks.begun);
}

StagedNotes WriteBehind::notes() const {
  StagedNotes all;
  const bool all_sent = shipping_ == nullptr || shipping_->empty();
  {
    const std::lock_guard lock(mutex_);
    all = notes_;
    const int64_t added = added_.bytes.sum();
    all.accepted_bytes += added;
    all.written_bytes += added_.over.sum();
    all.spent.traffic.shared_bytes += added;
    all.spent.times.pack_s += seconds_of(added_.pack.sum());
    // Exact, when nothing is under way: counts of newly dirty bytes are not where ranks overlap.
    // Who ends alone has flushed, while others may still fill pages: their part is theirs.
    const bool settled = ended_alone_ || gone_ || (all_sent && pool_->empty());
    if (pool_->has_several_handles())
      all.written_bytes = written_beside_others(all, settled);
    else if (settled)
      all.written_bytes = all.accepted_bytes - lost_here_;
    else  // for a moment what is lost may be counted before it is counted as written
      all.written_bytes = std::max<int64_t>(0, all.written_bytes);
  }
  pool_->losses().add_to(all);
  if (shipping_ == nullptr) return all;
  shipping_->add_losses(all);
  all.spent.traffic = all.spent.traffic + shipping_->traffic();
  return all;
}

int64_t WriteBehind::failures() const {
  return pool_->losses().failures() + (shipping_ != nullptr ? shipping_->failures() : 0);
}

}  // namespace penstock::exec
