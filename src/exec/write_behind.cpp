#include "exec/write_behind.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/clock.hpp"
#include "base/seeded_fault.hpp"

namespace penstock::exec {
namespace {

constexpr int64_t kPageStep = 4096;
constexpr int64_t kLeastPage = int64_t{64} << 10, kUsualPage = int64_t{1} << 20,
                  kLargestPage = int64_t{64} << 20;
constexpr int64_t kLeastSlots = 4;
constexpr int64_t kMostSlots = 1 << 16;
constexpr int64_t kInPlaceBytes = int64_t{1} << 30;  // bounds one write call

// A stripe, where the file has stripes: two clients then never want the lock of one.
int64_t page_bytes_for(int64_t asked, const layout::Geometry& geometry) {
  if (asked > 0) return align_up(asked, kPageStep);
  if (geometry.stripe_bytes == 0) return kUsualPage;
  return std::clamp(align_up(geometry.stripe_bytes, kPageStep), kLeastPage, kLargestPage);
}

// The same on every rank.
PoolShape pool_shape(const comm::Comm& comm, const WriteBehindShape& asked,
                     const layout::Geometry& geometry) {
  PoolShape shape;
  shape.page_bytes = page_bytes_for(asked.page_bytes, geometry);
  const int64_t ranks = divide_up(comm.size(), comm.nodes());
  const int64_t limit =
      asked.limit_bytes_per_rank > 0 ? asked.limit_bytes_per_rank : kWriteBehindLimitBytes;
  shape.slots = int(std::clamp(limit * ranks / shape.page_bytes, kLeastSlots, kMostSlots));
  return shape;
}

}  // namespace

// One call: where it is in its stream, its view and its memory.
class WriteBehind::Filling {
 public:
  explicit Filling(const WriteRequest& request)
      : view(*request.view),
        own(request.range),
        data(request.memory, request.memory_type, request.memory_count, own.begin),
        cursor(view.cursor()) {}

  // Bytes that follow each other in the file from stream position `at` on.
  int64_t contiguous_at(int64_t at) {
    seek(at);
    const layout::Run run = cursor.next(std::min(own.end - at, kInPlaceBytes));
    return run.count == 1 || run.stride == run.block ? run.bytes() : run.block;
  }
  void copy(std::byte* page, Off origin, StreamRange part) {
    seek(part.begin);
    data.transfer(page, origin, cursor, part.begin, part.size());
  }
  int64_t mark(DirtyMap dirty, StreamRange part) {
    seek(part.begin);
    return dirty.mark(cursor, part.size());
  }

  const layout::FileView& view;
  const StreamRange own;
  UserData data;
  layout::Cursor cursor;
  Spent spent;
  int64_t written_bytes = 0;  // past the pages, or with bytes that were in them before
  std::optional<Error> failed;

 private:
  void seek(int64_t at) {
    if (cursor.position() != at) cursor.seek(at);
  }
};

Result<std::unique_ptr<WriteBehind>> WriteBehind::make(comm::Comm& comm, WriteBehindShape asked,
                                                       const layout::Geometry& geometry) {
  const PoolShape shape = pool_shape(comm, asked, geometry);
  auto segment = comm.shared_segment(PagePool::bytes_for(shape), comm::Room::when_used);
  if (!segment) return tl::unexpected(std::move(segment).error());
  auto pool = PagePool::make(*std::move(segment), shape);
  const Result<void> mine = pool ? Result<void>() : Result<void>(tl::unexpected(pool.error()));
  if (auto agreed = comm::agree(comm, mine); !agreed) return tl::unexpected(agreed.error());
  return std::unique_ptr<WriteBehind>(
      new WriteBehind(*std::move(pool), double(comm.rank()) / comm.size()));
}

WriteBehind::WriteBehind(std::unique_ptr<PagePool> pool, double share)
    : pool_(std::move(pool)), share_(share) {}

// --- Accepting ---

WriteOutcome WriteBehind::write(const Target& target, const WriteRequest& request) {
  Filling filling(request);
  int64_t at = filling.own.begin;
  bool room = true;
  while (at < filling.own.end && room && !filling.failed) {
    const Off offset = filling.view.offset_of(at);
    const int64_t whole = write_whole_pages(target, filling, offset, at);
    at += whole;
    if (whole > 0 || filling.failed) continue;
    const int64_t page = offset / pool_->page_bytes();
    const StreamRange part = filling.view.clip({at, filling.own.end}, pool_->extent(page));
    room = fill(target, filling, page, part);
    if (room) at = part.end;
  }
  WriteOutcome outcome;
  outcome.prefix_bytes = at - filling.own.begin;
  outcome.mine = std::move(filling.failed);
  if (outcome.mine) outcome.agreed = outcome.mine->error_class;
  const std::lock_guard lock(mutex_);
  notes_.accepted_bytes += outcome.prefix_bytes;
  notes_.written_bytes += filling.written_bytes;
  notes_.spent = notes_.spent + filling.spent;
  return outcome;
}

// false: no slot has memory.
bool WriteBehind::fill(const Target& target, Filling& filling, int64_t page, StreamRange part) {
  const std::optional<PagePool::Stay> stay = pin(target, page);
  if (!stay) return false;
  bool full = false;
  {
    const Stopwatch watch(filling.spent.times.pack_s);
    filling.copy(pool_->memory(*stay), pool_->extent(page).begin, part);
    const int64_t newly = filling.mark(pool_->dirty(*stay), part);
    filling.written_bytes += part.size() - newly;  // over others that were to be written anyway
    full = pool_->unpin(*stay, newly);
  }
  filling.spent.traffic.shared_bytes += part.size();
  if (full) leave(target, *stay);
  return true;
}

std::optional<PagePool::Stay> WriteBehind::pin(const Target& target, int64_t page) {
  if (last_ && last_->page == page && pool_->pin(*last_)) return last_;
  for (;;) {
    last_ = pool_->pin(page);
    if (last_ || !pool_->usable()) return last_;
    make_room(target);
  }
}

// The page that nobody has touched for the longest time leaves; where all are on their way, the
// first of them makes room.
void WriteBehind::make_room(const Target& target) {
  const uint32_t seen = pool_->departures();
  if (const auto oldest = pool_->least_recently_used())
    leave(target, *oldest);
  else if (!pool_->empty())
    pool_->wait_for_departure(seen);
}

// Whole pages that lie in one piece in the file and in memory: how many bytes of them were written,
// 0 where the stream goes on otherwise.
int64_t WriteBehind::write_whole_pages(const Target& target, Filling& filling, Off offset,
                                       int64_t at) {
  const int64_t page = pool_->page_bytes();
  if (offset % page != 0 || filling.own.end - at < page || !filling.data.contiguous()) return 0;
  const int64_t whole = align_down(filling.contiguous_at(at), page);
  if (whole == 0) return 0;
  const Extent where{offset, offset + whole};
  evict(target, where);
  Spent& spent = filling.spent;
  const auto fault = write_extent(target, where, filling.data.in_place(at, whole), spent);
  const int64_t written =
      fault ? std::clamp<int64_t>(fault->first_missing - offset, 0, whole) : whole;
  if (fault) filling.failed = fault->error;
  if (auto synced = follow(target, {offset, offset + written}, written, spent); !synced) {
    filling.failed = synced.error();
    return 0;
  }
  filling.written_bytes += written;
  return written;
}

// What was accepted for these pages is in the file.
void WriteBehind::evict(const Target& target, Extent where) {
  if (pool_->empty()) return;
  for (Off at = where.begin; at < where.end; at += pool_->page_bytes()) {
    const auto stay = pool_->find(at / pool_->page_bytes());
    if (!stay) continue;
    leave(target, *stay);
    pool_->wait_until_left(*stay);
  }
}

// --- Leaving ---

void WriteBehind::flush(const Target& target) {
  if (pool_->empty()) return;
  const std::vector<PagePool::Stay> stays = pool_->stays();
  // Each rank begins elsewhere, so that those who flush together share the work.
  const auto first = size_t(share_ * double(stays.size()));
  for (size_t i = 0; i < stays.size(); ++i) leave(target, stays[(first + i) % stays.size()]);
  for (const PagePool::Stay& stay : stays) pool_->wait_until_left(stay);
}

void WriteBehind::flush_older(const Target& target, double seconds) {
  if (pool_->empty()) return;
  for (const PagePool::Stay& stay : pool_->stays(now_s() - seconds)) leave(target, stay);
}

void WriteBehind::leave(const Target& target, const PagePool::Stay& stay) {
  if (!pool_->close(stay)) return;
  write_page(target, stay);
  pool_->release(stay);
}

void WriteBehind::write_page(const Target& target, const PagePool::Stay& stay) {
  if (seeded_fault("page_forgotten")) return;
  const std::byte* const memory = pool_->memory(stay);
  const Off origin = pool_->extent(stay.page).begin;
  Spent spent;
  int64_t written = 0, lost = 0;
  Extent hull{};
  pool_->dirty(stay).for_each_extent([&](Extent e) {
    const auto fault =
        write_extent(target, e, {memory + (e.begin - origin), size_t(e.size())}, spent);
    const Off end = fault ? std::clamp(fault->first_missing, e.begin, e.end) : e.end;
    if (fault) pool_->lost(Extent{end, e.end}, fault->error);
    lost += e.end - end;
    hull = {written == 0 ? e.begin : hull.begin, end};
    written += end - e.begin;
  });
  if (written > 0) {
    if (auto synced = follow(target, hull, written, spent); !synced) {
      pool_->lost(hull, synced.error());
      lost += std::exchange(written, 0);
    }
  }
  const std::lock_guard lock(mutex_);
  notes_.written_bytes += written;
  lost_here_ += lost;
  notes_.spent = notes_.spent + spent;
}

std::optional<io::Fault> WriteBehind::write_extent(const Target& target, Extent where,
                                                   std::span<const std::byte> bytes, Spent& spent) {
  if (target.observer != nullptr) target.observer->writing(where.begin, bytes);
  const Stopwatch watch(spent.times.write_s);
  ++spent.traffic.writes;
  auto fault = target.file.write(bytes, where.begin);
  if (fault && target.observer != nullptr)
    target.observer->missed({std::clamp(fault->first_missing, where.begin, where.end), where.end});
  return fault;
}

// The sync policy is told. When the sync fails that it asks for, these bytes are not certain to be
// in the file, nor any that were written since the last one.
Result<void> WriteBehind::follow(const Target& target, Extent where, int64_t bytes, Spent& spent) {
  if (target.sync == nullptr || bytes == 0) return {};
  const Stopwatch watch(spent.times.sync_s);
  const Result<bool> pushed = target.sync->wrote(where, bytes);
  if (pushed) {
    if (*pushed) ++spent.traffic.syncs;
    return {};
  }
  if (target.observer != nullptr) target.observer->missed(where);
  return tl::unexpected(pushed.error());
}

void WriteBehind::note_written(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  notes_.accepted_bytes += bytes;
  notes_.written_bytes += bytes;
}

StagedNotes WriteBehind::notes() const {
  StagedNotes all;
  {
    const std::lock_guard lock(mutex_);
    all = notes_;
    // Exact, when nothing is under way: counts of newly dirty bytes are not where ranks overlap.
    if (pool_->empty()) all.written_bytes = all.accepted_bytes - lost_here_;
  }
  pool_->add_losses(all);
  return all;
}

}  // namespace penstock::exec
