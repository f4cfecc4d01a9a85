#include "exec/page_losses.hpp"

#include <mutex>

#include "exec/gathering.hpp"

namespace penstock::exec {

void PageLosses::add(Extent where, int64_t bytes, const Error& why) noexcept {
  const std::lock_guard lock(lock_);
  if (failures() == 0 || worst_.error_class < int32_t(why.error_class))
    worst_ = PlainError::of(why);
  bytes_ += bytes;
  if (places_ > 0 && where_[places_ - 1].end == where.begin)
    where_[places_ - 1].end = where.end;
  else if (places_ < where_.size())
    where_[places_++] = where;
  else
    told_in_part_ = true;
  failures_.fetch_add(1, std::memory_order_release);
}

int64_t PageLosses::bytes() const noexcept {
  if (failures() == 0) return 0;
  const std::lock_guard lock(lock_);
  return bytes_;
}

void PageLosses::add_to(StagedNotes& notes) const {
  if (failures() == 0) return;
  const std::lock_guard lock(lock_);
  notes.failures += failures();
  notes.lost_bytes += bytes_;
  notes.lost_told_in_part = notes.lost_told_in_part || told_in_part_;
  notes.lost.insert(notes.lost.end(), where_.begin(), where_.begin() + places_);
  notes.failure = worst_of(notes.failure, worst_.with("of pages that this node's ranks filled"));
}

}  // namespace penstock::exec
