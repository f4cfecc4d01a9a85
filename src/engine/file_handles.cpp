// Several handles of one process on one file (docs/decisions/0042): one rank's own handle fills the
// pages of the handle that it was opened beside; whatever else comes ends deferring for all.

#include <mutex>
#include <utility>

#include "engine/file_state.hpp"
#include "exec/write_behind.hpp"

namespace penstock::engine {

// Before ranks agree on anything. Afterwards all handles of this process on the file share the same
// pages, or none of them has any.
void File::State::look_beside() {
  for (const File* const other : info.beside)
    if (lender == nullptr && other->state_->lends_to(*this)) lender = other->state_.get();
  if (lender == nullptr) share_nothing();
}

void File::State::share_nothing() {
  if (info.beside.empty()) return;
  info.may_defer = false;
  writes_at_once = true;
  for (const File* const other : info.beside) other->state_->stop_deferring();
}

// A handle of one rank: several would have to find the same pages, and all of them some. What a
// name stands for may have changed since the other handle was opened.
bool File::State::lends_to(const State& other) {
  const std::lock_guard not_closed(by_itself);  // by another thread
  if (!lends || other.comm->size() != 1 || !other.may_lend()) return false;
  if (file == nullptr || other.file == nullptr || file->fd() < 0 || other.file->fd() < 0)
    return false;
  const auto mine = io::identify(file->fd()), theirs = io::identify(other.file->fd());
  return mine && theirs && *mine == *theirs;
}

// staged(limit=0) promises that every call returns with its bytes in the file.
bool File::State::may_lend() const noexcept {
  return info.config.write_behind == WriteBehind::automatic && info.writable && info.may_defer &&
         stages();
}

// Whether independent writes would be served with another progress mode.
bool File::State::thread_may_help() const noexcept {
  return may_lend() && !info.readable &&
         info.config.write_behind_progress != exec::Progress::thread;
}

// Also where the file may be read: every read of the node's ranks by MPI flushes these pages.
bool File::State::borrow_pages() {
  if (lender == nullptr) return false;
  const int seconds = info.config.write_behind_seconds;
  const std::lock_guard not_closed(lender->by_itself);
  defers = pipeline->share_pages_of(*lender->pipeline,
                                    seconds > 0 ? seconds : exec::kWriteBehindSeconds);
  may_defer = defers;
  lends = may_defer;
  return true;
}

// What a handle writes that is not verified itself, nobody else can tell from damage.
void File::State::verify_beside() {
  static std::mutex groups;  // other threads may open the file at once, beside this handle
  const std::lock_guard one_at_a_time(groups);
  bool writes_unverified = verifier == nullptr && info.writable;
  for (const File* const other : info.beside) {
    const State& its = *other->state_;
    verified_together = its.verified_together;
    writes_unverified = writes_unverified || (its.verifier == nullptr && its.info.writable);
  }
  if (verified_together == nullptr) verified_together = std::make_shared<VerifiedTogether>();
  written_past_before = verified_together->times_written_past();
  if (writes_unverified) verified_together->written_past();
  verified_together->opened(comm->size(), info.job_ranks);
  if (verifier != nullptr) verified_together->add(verifier);
}

// When the file is open, for better or worse.
void File::State::forget_beside() {
  if (lender != nullptr && !defers) share_nothing();
  lender = nullptr;
  info.beside.clear();
}

void File::State::accept_nothing_more() noexcept {
  lends = false;
  writes_at_once = true;
  defers = false;
}

// Behind the write that another thread is in: how it goes on is decided already.
void File::State::stop_deferring() {
  const std::lock_guard one_at_a_time(by_itself);
  const bool deferred = defers;
  accept_nothing_more();
  drain();
  if (!deferred) return;
  const std::lock_guard lock(mutex);
  notes.degraded["write-behind: the file was opened again by the same process"] = 1;
}

void File::found_beside(std::vector<File*> others) {
  if (others.empty()) return;
  state_->info.beside = std::move(others);
  state_->verify_beside();
  for (const File* const other : state_->info.beside) other->state_->stop_deferring();
  state_->stop_deferring();
  state_->info.beside.clear();
}

}  // namespace penstock::engine
