// What an open file counts and notes down of its calls, for the report.
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "base/clock.hpp"
#include "engine/file_state.hpp"
#include "engine/report.hpp"

namespace penstock::engine {
namespace {

bool is_write(CallKind k) {
  return k == CallKind::write || k == CallKind::write_all || k == CallKind::write_at ||
         k == CallKind::write_at_all;
}

}  // namespace

void File::State::count_call(const Write& write, int64_t bytes, double seconds) {
  Counters& c = notes.counters;
  ++c.calls[size_t(write.kind)];
  ++c.sizes[size_t(size_bucket(bytes))];
  c.call_ns += ns(seconds);
  if (write.argument_error == ErrorClass::none)
    count_pattern(write, {write.position_bytes, write.position_bytes + bytes});
}

void File::State::count_pattern(const Write& write, StreamRange range) {
  Counters& c = notes.counters;
  const layout::FileView& v = view_of(write);
  if (range.empty() || v.is_contiguous() || v.extent_of(range).size() == range.size())
    ++c.contiguous_calls;
  else
    ++((write.view != nullptr ? is_regular(v) : view_regular) ? c.strided_calls
                                                              : c.irregular_calls);
}

Result<void> File::empty() {
  const int fd = state_->file->fd();  // -1: of a mechanism that opens none
  const char* const path = state_->info.path.c_str();
  int rc;
  do {
    rc = fd >= 0 ? ::ftruncate(fd, 0) : ::truncate(path, 0);
  } while (rc != 0 && errno == EINTR);
  if (rc != 0) return os_error("truncate", path, errno);
  state_->verified_together->written_past();
  ++state_->written_past_before;  // but others' earlier excuses stay
  return {};
}

void File::passed_through(CallKind kind, int64_t bytes, double seconds, const char* function,
                          const std::optional<Error>& failure) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  Counters& c = s.notes.counters;
  if (kind == CallKind::sync)
    s.note_library_sync(seconds, failure.has_value());
  else
    ++c.calls[size_t(kind)];
  if (failure) {
    ++c.errors;
    s.note_error(*failure);
  }
  if (kind == CallKind::read) c.read_bytes += bytes;
  if (kind == CallKind::read) s.note_passed_read(function);
  const bool resizes = std::string_view(function).ends_with("set_size");
  if (is_write(kind) || resizes) s.verified_together->written_past();
  if (!is_write(kind)) return;
  const double end_s = now_s();
  s.notes.wrote(end_s - seconds, end_s);
  ++c.passthrough_calls;
  ++c.sizes[size_t(size_bucket(bytes))];
  c.passthrough_bytes += bytes;
  c.call_ns += ns(seconds);
  if (!s.info.config.left_alone.empty()) {
    ++s.notes.degraded[s.info.config.left_alone];
  } else if (s.info.config.mode == Mode::serve) {
    ++s.notes.degraded[std::string(function) + ": " +
                       (serves_independent() ? "not taken over" : why_unserved())];
  }
}

void File::passed_end_failed(CallKind kind, int64_t bytes, const Error& failure) {
  const std::lock_guard lock(state_->mutex);
  Counters& c = state_->notes.counters;
  (is_write(kind) ? c.passthrough_bytes : c.read_bytes) -= bytes;
  ++c.errors;
  state_->note_error(failure);
}

// Its part of a sync that the engine's has begun, and counted: only now all is on the device, and
// only where both succeeded. REQUIRES mutex.
void File::State::note_library_sync(double seconds, bool failed) {
  notes.counters.sync_ns += ns(seconds);
  if (notes.synced_s > 0) notes.synced_s = failed ? 0 : now_s();
}

// A collective read that could have been the engine's, and that nobody asked to pass.
void File::State::note_passed_read(std::string_view function) {
  const bool ours = function.starts_with("read_all") || function.starts_with("read_at_all");
  if (!ours || info.config.mode != Mode::serve || info.config.reads == Reads::pass) return;
  if (const std::string why = why_unread(); !why.empty())
    ++notes.degraded[std::string(function) + ": " + why];
}

void File::degraded(const std::string& why) {
  const std::lock_guard lock(state_->mutex);
  ++state_->notes.degraded[why];
}

void File::State::note_error(const Error& error) {
  if (!notes.first_error.empty()) return;
  notes.first_error = "rank " + std::to_string(comm->rank()) + ": " + error.message();
}

// What the mechanism does otherwise than asked, as it says at open and may say again by close.
void File::State::note_mechanism() {
  const std::string why = file->degraded();
  const std::lock_guard lock(mutex);
  if (!why.empty())
    notes.degraded[std::string(info.config.method.mechanism->name) + ": " + why] = 1;
}

// For the actual rate, so on the one rank that reports it, unless that knows of a sync after all
// that it wrote.
void File::State::note_unwritten() {
  if (!file || file->fd() < 0 || comm->rank() != 0 || comm->nodes() > 1) return;
  const std::lock_guard lock(mutex);
  const FileNotes now = notes_now();
  const bool synced = now.synced_s > 0 && now.synced_s >= now.last_write_s;
  if (!synced) notes.unwritten = io::about_unwritten(file->fd());
}

// What the sync policy did beside the writers, and what it could not do.
void File::State::take_sync_notes(FileNotes& into) const {
  if (!sync) return;
  const io::SyncNotes told = sync->notes();
  into.counters.policy_syncs += told.syncs_behind;
  if (!told.degraded.empty()) into.degraded[told.degraded] = 1;
}

// REQUIRES mutex, or nobody else in the file.
FileNotes File::State::notes_now() const {
  FileNotes now = notes;
  pieces.add_to(now);
  exec::Spent spent = spent_together + spent_alone;
  if (pipeline != nullptr) spent = spent + pipeline->staged_notes().spent;
  now.take(spent.times, spent.traffic);
  now.take(spent_reading + spent_reading_alone);
  if (file != nullptr) now.counters.cold_bytes = file->cold_bytes();
  take_sync_notes(now);
  take_staged_notes(now);
  return now;
}

// Calls that go the short way leave it to who asks. REQUIRES mutex, and that nobody writes alone.
void File::State::take_spent_alone() {
  if (pipeline != nullptr) spent_alone = pipeline->spent_alone();
}

FileReport File::snapshot() const {
  State& s = *state_;
  // Of a call that is under way nothing is known before it ends.
  const std::unique_lock nobody_writes(s.by_itself, std::try_to_lock);
  const std::lock_guard lock(s.mutex);
  if (nobody_writes) s.take_spent_alone();
  FileReport report = local_report(s.notes_now(), describe(s.info, s.file_system));
  if (s.verifier) report.unverified_bytes = s.verifier->not_yet_verified_bytes();
  return report;
}

}  // namespace penstock::engine
