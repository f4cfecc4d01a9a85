// Reads of an open file (docs/decisions/0024): a descriptor of their own, opened when the first of
// them may be served.

#include <utility>

#include "base/clock.hpp"
#include "engine/file_state.hpp"
#include "engine/select.hpp"
#include "exec/abandon.hpp"
#include "io/probe.hpp"

namespace penstock::engine {

// The same file that is written, if it is, whatever has its name by now.
Result<std::unique_ptr<io::ReadableFile>> File::State::open_to_read() const {
  const bool is_written = file && file->fd() >= 0;
  return is_written ? io::open_again_for_reading(file->fd(), info.path)
                    : io::open_for_reading(info.path);
}

Result<void> File::State::open_readable() {
  auto opened = open_to_read();
  if (!opened) return tl::unexpected(opened.error());
  readable = *std::move(opened);
  return {};
}

// Collective. What a rank cannot read it cannot verify, which is no error of what it wrote. A node
// sees what others wrote to a network file system when they have synced it and it opens the file
// anew.
Verification File::State::verify() {
  if (comm->nodes() > 1 && sync) (void)sync->sync_unasked(io::SyncKind::full);
  (void)comm->barrier();  // everybody's bytes are in the file before anybody looks
  const auto mine = open_to_read();
  const bool library_wrote = verified_together->times_written_past() > written_past_before;
  const bool lost = !all_that_was_accepted();
  Verification v = verifier->check(*comm, mine ? mine->get() : nullptr, *verified_together,
                                   library_wrote || lost);
  const std::optional<Error> unread = mine ? v.why_unread : mine.error();
  if (unread) notes.degraded["verify: bytes of this rank are unverified: " + unread->message()] = 1;
  if (v.unasked_bytes > 0)
    notes.degraded
        ["verify: bytes differ that ranks may have written whom this handle could not ask"] = 1;
  return v;
}

// Collective, before the first read of a file that is written too.
void File::State::start_reads() {
  const Result<void> mine = readable ? Result<void>() : open_readable();
  int64_t failed[] = {mine ? 0 : 1};
  exec::or_abandon(comm->all_max(failed));
  if (!mine)
    never_read = mine.error().message();
  else if (failed[0] != 0)
    never_read = "another rank cannot be served";
  if (!never_read.empty()) return;
  reads = std::make_unique<exec::ReadPipeline>(*comm, *readable, file_system.geometry);
  lone_reads = std::make_unique<exec::LoneReader>(*readable);
}

// Why a collective read is not served now; empty when it is, as far as is known before the first.
std::string File::State::why_unread() const {
  if (!never_read.empty()) return never_read;
  if (!view_unserved.empty()) return view_unserved;
  return atomic ? "atomic mode" : "";
}

bool File::serves_reads() {
  State& s = *state_;
  if (!s.why_unread().empty()) return false;
  if (!s.reads) s.start_reads();
  return s.never_read.empty();
}

exec::ReadRequest File::State::request(const Read& read) const {
  exec::ReadRequest r;
  r.view = &view;
  r.argument_error = read.argument_error;
  if (read.argument_error != ErrorClass::none) return r;
  r.range = {read.position_bytes,
             read.position_bytes + read.memory_count * read.memory_type.size()};
  r.memory = static_cast<std::byte*>(read.memory);
  r.memory_type = read.memory_type;
  r.memory_count = read.memory_count;
  return r;
}

exec::Pipeline::Policy File::State::reading_policy() const {
  exec::Pipeline::Policy p = policy();
  p.algorithm = fixed_reading(collective.algorithm, team(), file_system.geometry);
  p.decide = &decide_reading;
  return p;
}

ReadResult File::read_all(const Read& read) {
  State& s = *state_;
  const double begin_s = now_s();
  // What this rank has written is in the file before the ranks meet; so is then what all have.
  const ErrorClass flushed = s.flush(Drain::joint);
  const std::lock_guard one_at_a_time(s.together);
  exec::ReadRequest r = s.request(read);
  r.argument_error = worse(r.argument_error, flushed);
  const exec::ReadOutcome outcome = s.reads->read_all(r, s.reading_policy());
  const std::lock_guard lock(s.mutex);
  s.spent_reading = s.reads->spent();
  return s.account(outcome, begin_s);
}

// What was lost before a read that only starts is left for a later call to tell.
ErrorClass File::flush_before(const Read& read) {
  if (!read.starts) return state_->flush(Drain::mine);
  flush_untold(Drain::mine);
  return ErrorClass::none;
}

ReadResult File::read(const Read& read) {
  State& s = *state_;
  const double begin_s = now_s();
  const ErrorClass flushed = flush_before(read);
  const std::lock_guard one_at_a_time(s.by_itself);
  exec::ReadOutcome outcome = s.lone_reads->read(s.request(read));
  outcome.agreed = worse(outcome.agreed, flushed);  // told beside what is there
  const std::lock_guard lock(s.mutex);
  s.spent_reading_alone = s.lone_reads->spent();
  return s.account(outcome, begin_s);
}

ReadResult File::State::account(const exec::ReadOutcome& outcome, double begin_s) {
  Counters& c = notes.counters;
  ++c.calls[size_t(CallKind::read)];
  ++c.read_calls;
  c.engine_read_bytes += outcome.prefix_bytes;
  c.read_call_ns += ns(now_s() - begin_s);
  if (outcome.agreed != ErrorClass::none) ++c.errors;
  if (outcome.mine) note_error(*outcome.mine);
  return {outcome.agreed, outcome.prefix_bytes, outcome.mine};
}

}  // namespace penstock::engine
