#include "io/stream_sync.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/units.hpp"
#include "io/sync_habit.hpp"

namespace penstock::io {
namespace {

// What one call hands to the kernel is a request of the device's: a disk that takes few at a time
// is longer at work on long ones, and has the next for it later. Also, close waits for one.
constexpr int64_t kLeastPiece = kMiB, kMostPiece = 4 * kMiB;

// A range in which this writer has less than this part is mostly holes or others', who start it.
constexpr int64_t kMostlyOthers = 16;

// Over what lies between pieces further apart than that nobody goes piece by piece: the kernel
// starts what came before in its own time.
constexpr int64_t kFar = int64_t{1} << 30;

// Ranks that write short pieces beside each other fill memory pages together, and a page whose
// write-back has begun goes to the device once more for each who comes after it.
constexpr int64_t kLeastRunBytes = int64_t{16} << 10;

int start_write_back(int fd, Extent e) {
  int rc;
  do {
    rc = ::sync_file_range(fd, e.begin, e.size(), SYNC_FILE_RANGE_WRITE);
  } while (rc < 0 && errno == EINTR);
  return rc < 0 ? errno : 0;
}

bool is_far(Extent a, Extent b) { return std::max(b.begin - a.end, a.begin - b.end) > kFar; }

// Nothing was started and nothing is lost: the pages are dirty still, and the kernel comes back to
// them, as a sync does. (SMB before Linux 6.10 says EAGAIN while it connects anew.)
bool is_passing(int sys_errno) { return sys_errno == ENOMEM || sys_errno == EAGAIN; }

// The call is refused here, as opposed to: the bytes could not be written.
bool is_refusal(int sys_errno) {
  return sys_errno == ESPIPE || sys_errno == EINVAL || sys_errno == ENOSYS ||
         sys_errno == EOPNOTSUPP || sys_errno == EPERM;
}

}  // namespace

// --- Writers ---

Result<bool> StreamSync::wrote(Extent where, int64_t bytes) {
  if (file_.fd() < 0) return false;  // of a mechanism without a file
  wrote_ = true;
  if (due_.add(collect(where, bytes)) && wanted() && !thread_.nudge()) stream();
  if (std::optional<Error> failed = take_untold()) return tl::unexpected(*std::move(failed));
  return false;
}

// What the run that goes on with `where` holds and nobody has collected; empty while it is short.
// REQUIRES mutex_.
Extent StreamSync::take_of_run(Extent where) {
  if (where.begin != run_.end) {
    run_.begin = where.begin;
    run_collected_ = where.begin;
  }
  run_.end = where.end;
  if (run_.size() < least_run_bytes()) return {};
  return {std::exchange(run_collected_, run_.end), run_.end};
}

// From the first to the last byte of what came together. Where writers interleave, that holds bytes
// of others too; theirs are only started earlier. What is scattered that far the kernel starts in
// its own time: going over it piece by piece would cost what the range does and not the bytes. How
// many bytes came.
int64_t StreamSync::collect(Extent where, int64_t bytes) {
  if (where.size() > 2 * kFar && where.size() / kMostlyOthers > bytes) return 0;
  const std::lock_guard lock(mutex_);
  const Extent fresh = take_of_run(where);
  if (fresh.empty()) return 0;
  if (is_far(pending_, fresh)) {
    pending_ = {};
    pending_bytes_ = 0;
  }
  pending_ = hull_of(pending_, fresh);
  const int64_t came = fresh.begin < where.begin ? fresh.size() : bytes;
  pending_bytes_ += came;
  return came;
}

// What the program did not ask for has to be worth it.
int64_t StreamSync::least_run_bytes() const noexcept {
  return streams_ == Streams::always ? 0 : std::min(kLeastRunBytes, due_.every_bytes());
}

void StreamSync::drop_pending() {
  const std::lock_guard lock(mutex_);
  pending_ = {};
  pending_bytes_ = 0;
  run_collected_ = run_.end;
}

std::optional<Error> StreamSync::take_untold() {
  const std::lock_guard lock(mutex_);
  return std::exchange(untold_, std::nullopt);
}

bool StreamSync::wanted() const noexcept {
  return streams_ == Streams::always || sync_habit() == SyncHabit::syncs;
}

// The device has nothing to do while the first piece is copied, and has it all when the last one
// is.
int64_t StreamSync::piece_bytes() const noexcept { return wanted() ? due_.every_bytes() : 0; }

// --- The thread; a writer where there is none ---

void StreamSync::stream() {
  while (!closing_ && start_piece()) {
  }
}

void StreamSync::stop() {
  closing_ = true;
  thread_.stop();
}

int64_t StreamSync::most_bytes_of_piece() const noexcept {
  return std::clamp(due_.every_bytes(), kLeastPiece, kMostPiece);
}

// Empty when nothing is left, or the kernel wants none.
Extent StreamSync::take_piece() {
  const std::lock_guard lock(mutex_);
  if (!refused_.empty()) return {};
  const Extent piece{pending_.begin,
                     std::min(pending_.end, capped_sum(pending_.begin, most_bytes_of_piece()))};
  pending_.begin = piece.end;
  if (pending_.empty()) pending_bytes_ = 0;
  return piece;
}

bool StreamSync::start_piece() {
  const Extent piece = take_piece();
  if (piece.empty()) return false;
  const int sys_errno = start_write_back(file_.fd(), piece);
  if (sys_errno != 0 && !is_passing(sys_errno))
    is_refusal(sys_errno) ? give_up(sys_errno) : note_lost(piece, sys_errno);
  return true;
}

void StreamSync::give_up(int sys_errno) {
  const std::lock_guard lock(mutex_);
  refused_ = "stream: write-back cannot be started here, the kernel starts it when it likes: " +
             os_error("sync_file_range", "", sys_errno).value().message();
}

// Write-back itself failed, so that file pages may have been dropped.
void StreamSync::note_lost(Extent piece, int sys_errno) {
  Error error =
      os_error("sync_file_range",
               "offset " + std::to_string(piece.begin) + ", the write-back started after every " +
                   format_size(due_.every_bytes()),
               sys_errno)
          .value();
  note_failure(error);
  const std::lock_guard lock(mutex_);
  if (!untold_) untold_ = std::move(error);
}

// --- The program ---

// A sync alone would hand over what the thread has not come to in requests as long as can be. What
// comes meanwhile is not waited for.
void StreamSync::start_the_rest() {
  for (int64_t pieces = pieces_left(); pieces > 0 && start_piece(); --pieces) {
  }
}

int64_t StreamSync::pieces_left() const {
  const std::lock_guard lock(mutex_);
  if (pending_.size() / kMostlyOthers > pending_bytes_) return 0;
  return pending_.size() / most_bytes_of_piece() + 1;
}

Result<void> StreamSync::sync_now(SyncKind kind) {
  if (wanted()) start_the_rest();
  drop_pending();
  Result<void> synced = sync_file(kind);
  take_untold();  // told now
  return synced;
}

void StreamSync::note_asked() {
  synced_ = true;
  note_synced();
}

Result<void> StreamSync::sync_at_close() {
  stop();
  take_untold();
  if (wrote_ && !synced_) note_closed_unsynced();
  return {};
}

SyncNotes StreamSync::notes() const {
  const std::optional<Error> why_none = thread_.why_none();
  const std::lock_guard lock(mutex_);
  if (!refused_.empty()) return {0, refused_};
  if (!why_none) return {};
  return {0, "stream: its thread could not be started, so writers start write-back themselves: " +
                 why_none->message()};
}

}  // namespace penstock::io
