#include "exec/page_losses.hpp"

#include <mutex>

namespace penstock::exec {

void PageLosses::add(Extent where, const Error& why) noexcept {
  const std::lock_guard lock(lock_);
  if (failures() == 0 || error_class_ < uint32_t(why.error_class)) {
    error_class_ = uint32_t(why.error_class);
    sys_errno_ = why.sys_errno;
  }
  bytes_ += where.size();
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
  const auto error_class = ErrorClass(error_class_);
  if (!notes.failure || notes.failure->error_class < error_class)
    notes.failure =
        Error{error_class, sys_errno_, "write behind", "of pages that this node's ranks filled"};
}

}  // namespace penstock::exec
