#include "exec/staged_stream.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/clock.hpp"
#include "exec/alone.hpp"

namespace penstock::exec {
namespace {

// Large enough that a piece costs nothing beside its bytes, and small enough that the first is on
// its way while the others are copied.
constexpr int64_t kPieceBytes = int64_t{4} << 20;

// Of its area, to be assigned.
std::unique_ptr<StagedPiece> piece_of(const StagingArea& area) {
  if (std::unique_ptr<StagedPiece> again = area.pieces.take()) return again;
  return std::make_unique<StagedPiece>(area.pieces);
}

// What no memory was found for, behind all that is staged: before this returns.
void write_now(const StagingArea& area, const StreamTarget& target, StreamAccount& account,
               const layout::FileView& view, StreamRange rest, UserData& data,
               StagedStream& staged) {
  area.stager.drain(area.lane);
  account.settle(target.sync);
  Spent spent;
  AlignedBuffer packing;
  WriteOutcome outcome = write_alone(
      {target.file, packing, target.sync, spent.times, spent.traffic}, view, rest, data);
  staged.bytes += outcome.prefix_bytes;
  account.accepted(outcome.written_bytes);
  account.wrote(target.sync, view, {rest.begin, rest.begin + outcome.prefix_bytes}, outcome, spent);
  staged.mine = std::move(outcome.mine);
}

}  // namespace

StagedStream stage_stream(const StagingArea& area, const StreamTarget& target,
                          // NOLINTNEXTLINE(performance-unnecessary-value-param): pieces share it
                          std::shared_ptr<StreamAccount> account, const layout::FileView& view,
                          StreamRange own, UserData& data, PhaseTimes& times) {
  StagedStream staged;
  const int64_t piece_bytes =
      std::clamp(area.limit_bytes, int64_t(AlignedBuffer::kAlignment), kPieceBytes);
  for (int64_t at = own.begin; at < own.end;) {
    const StreamRange range = own.intersect(StreamRange::of(at, piece_bytes));
    auto piece = piece_of(area);
    piece->assign(target, account, view, range);
    // From here on nothing is allocated: memory that is held must be staged or given back.
    auto memory = area.stager.memory(range.size(), area.limit_bytes);
    if (!memory) {
      write_now(area, target, *account, view, {at, own.end}, data, staged);
      return staged;
    }
    {
      const Stopwatch watch(times.pack_s);
      data.pack(memory->data(), at, range.size());
    }
    piece->memory = *std::move(memory);
    account->accepted(range.size());
    staged.last = area.stager.stage(area.lane, std::move(piece));
    staged.bytes += range.size();
    at = range.end;
  }
  return staged;
}

// --- A piece ---

void StagedPiece::assign(const StreamTarget& target, std::shared_ptr<StreamAccount> account,
                         const layout::FileView& view, StreamRange range) {
  target_.emplace(target);
  account_ = std::move(account);
  view_ = view;
  range_ = range;
}

void StagedPiece::write() noexcept {
  try {
    Spent spent;
    AlignedBuffer nothing_to_pack;
    static const layout::LoopTree bytes = layout::LoopTree::bytes(1);
    UserData data(memory.data(), bytes, range_.size(), range_.begin);
    account_->settle(target_->sync);
    const WriteOutcome outcome =
        write_alone({target_->file, nothing_to_pack, target_->sync, spent.times, spent.traffic},
                    view_, range_, data);
    account_->wrote(target_->sync, view_, range_, outcome, spent);
  } catch (const std::exception& e) {
    account_->lost(view_, range_, Error{ErrorClass::no_memory, 0, "staged write", e.what()});
  }
}

// Keeps nothing alive that others own.
void StagedPiece::retire() noexcept {
  account_.reset();
  view_ = {};
  pool_.give_back(std::unique_ptr<StagedPiece>(this));
}

// --- The account ---

void StreamAccount::accepted(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  notes_.accepted_bytes += bytes;
}

void StreamAccount::settle(const io::FileSync* sync) {
  if (sync == nullptr) return;
  const io::SyncMarks marks = sync->marks();
  const Result<void> why = sync->first_failure();
  const std::lock_guard lock(mutex_);
  const SinceSync::Bytes lost = since_sync_.settle(marks);
  if (lost.count > 0 && !why) take_back(lost, why.error());
  if (since_sync_.empty()) first_unsynced_.reset();
}

void StreamAccount::wrote(const io::FileSync* sync, const layout::FileView& view, StreamRange piece,
                          const WriteOutcome& outcome, const Spent& spent) {
  const std::lock_guard lock(mutex_);
  notes_.written_bytes += outcome.written_bytes;
  notes_.spent.times = notes_.spent.times + spent.times;
  notes_.spent.traffic = notes_.spent.traffic + spent.traffic;
  if (sync != nullptr) follow_syncs(*sync, view, piece, outcome);
  if (outcome.mine)
    add_missing(view, {piece.begin + outcome.prefix_bytes, piece.end}, *outcome.mine);
}

// REQUIRES mutex_.
void StreamAccount::follow_syncs(const io::FileSync& sync, const layout::FileView& view,
                                 StreamRange piece, const WriteOutcome& outcome) {
  const io::SyncMarks marks = sync.marks();
  const StreamRange fresh{piece.begin + outcome.synced_bytes, piece.begin + outcome.written_bytes};
  if (outcome.synced_bytes > 0)
    since_sync_.synced(since_sync_.writes(), marks, outcome.sync_failed);
  if (since_sync_.empty()) first_unsynced_.reset();
  if (outcome.sync_failed) take_back(since_sync_.take(marks), *outcome.mine);
  if (fresh.empty()) return;
  if (!first_unsynced_) first_unsynced_ = fresh.begin;
  since_sync_.wrote(view.extent_of(fresh), fresh.size(), marks.begun);
}

// REQUIRES mutex_. These were counted as written.
void StreamAccount::take_back(const SinceSync::Bytes& uncertain, const Error& why) {
  if (uncertain.count == 0) return;
  notes_.written_bytes -= uncertain.count;
  if (const auto first = std::exchange(first_unsynced_, std::nullopt))
    first_missing_ = std::min(first_missing_.value_or(*first), *first);
  add_lost(uncertain.hull, uncertain.count, why);
}

void StreamAccount::lost(const layout::FileView& view, StreamRange range, const Error& why) {
  const std::lock_guard lock(mutex_);
  add_missing(view, range, why);
}

// REQUIRES mutex_.
void StreamAccount::add_missing(const layout::FileView& view, StreamRange range, const Error& why) {
  if (range.empty()) return;
  first_missing_ = std::min(first_missing_.value_or(range.begin), range.begin);
  add_lost(view.extent_of(range), range.size(), why);
}

// Pieces that follow each other are one loss. Of many the first are told, and the sum of all.
void StreamAccount::add_lost(Extent where, int64_t bytes, const Error& why) {
  failures_.fetch_add(1, std::memory_order_release);
  notes_.lost_bytes += bytes;
  if (!notes_.failure || notes_.failure->error_class < why.error_class) notes_.failure = why;
  if (!notes_.lost.empty() && notes_.lost.back().end == where.begin)
    notes_.lost.back().end = where.end;
  else if (notes_.lost.size() < kMostLostTold)
    notes_.lost.push_back(where);
  else
    notes_.lost_told_in_part = true;
}

StagedNotes StreamAccount::notes() const {
  const std::lock_guard lock(mutex_);
  StagedNotes notes = notes_;
  notes.failures = failures();
  return notes;
}

int64_t StreamAccount::first_missing(int64_t end) const {
  const std::lock_guard lock(mutex_);
  return first_missing_.value_or(end);
}

}  // namespace penstock::exec
