// Writes of an open file that return before the bytes are in it (docs/decisions/0025): what was
// accepted, what became of it, and who is told.

#include <utility>

#include "base/clock.hpp"
#include "base/seeded_fault.hpp"
#include "engine/file_state.hpp"
#include "exec/abandon.hpp"

namespace penstock::engine {
namespace {

// "[0, 4096), [8192, 12288)"
std::string spell(const std::vector<Extent>& places) {
  std::string text;
  for (const Extent e : places)
    text +=
        (text.empty() ? "[" : ", [") + std::to_string(e.begin) + ", " + std::to_string(e.end) + ")";
  return text;
}

// REQUIRES staged.failure.
Error lost_error(const exec::StagedNotes& staged) {
  Error error = *staged.failure;
  error.detail += "; " + std::to_string(staged.lost_bytes) +
                  " bytes that earlier writes had accepted are not in the file, in " +
                  spell(staged.lost) + (staged.lost_told_in_part ? " and elsewhere" : "");
  return error;
}

}  // namespace

int64_t File::State::staged_limit() const noexcept {
  return info.config.method.staged_bytes.value_or(exec::kStagedLimitBytes);
}

// Nothing waits in memory of what is to be on the device when a write returns.
bool File::State::stages() const noexcept {
  return staged_limit() > 0 && !file_system.is_synchronous;
}

WriteResult File::stage(const Write& write) {
  State& s = *state_;
  const double begin_s = now_s();
  const bool collective = write.kind == CallKind::write_all || write.kind == CallKind::write_at_all;
  const std::lock_guard one_at_a_time(s.by_itself);
  if (!s.stages()) return s.write(write, begin_s);
  if (collective) s.staged_by_all = true;  // by other ranks, where this one writes at once
  if (s.writes_at_once) return s.write(write, begin_s);
  return s.accept(write, exec::Returns::at_once, begin_s);
}

// A write of this rank alone that returns when its bytes are copied. REQUIRES by_itself.
WriteResult File::State::accept(const Write& write, exec::Returns returns, double begin_s) {
  exec::WriteRequest r = request(write);
  r.returns = returns;
  // Before its own bytes are on their way, so that what it tells does not depend on the thread.
  const std::optional<Error> earlier = untold();
  const Verifier::Call call(verifier.get());
  const exec::WriteOutcome outcome = pipeline->stage_alone(r);
  call.ended(r, outcome.agreed == ErrorClass::none);
  const std::lock_guard lock(mutex);
  spent_alone = pipeline->spent_alone();
  const double end_s = now_s();
  notes.wrote(begin_s, end_s);
  count_call(write, r.range.size(), end_s - begin_s);
  notes.ran(plan::find_algorithm("individual"));
  if (outcome.mine) note_error(*outcome.mine);
  if (outcome.mine || earlier) ++notes.counters.errors;
  keep_walk(write);
  const ErrorClass told = earlier ? earlier->error_class : ErrorClass::none;
  const int64_t accepted = outcome.prefix_bytes;
  return {worse(outcome.agreed, told), accepted - accepted % view_of(write).etype_bytes(),
          outcome.mine ? outcome.mine : earlier};
}

// A write that is in the file when it returns, where this rank's node may not write all of it.
// REQUIRES by_itself.
WriteResult File::State::write_by_owners(const Write& write, double begin_s) {
  WriteResult result = accept(write, exec::Returns::soon, begin_s);
  drain();
  const std::optional<Error> lost = untold();
  if (!lost) return result;
  if (result.agreed == ErrorClass::none) count_error();
  return {worse(result.agreed, lost->error_class), 0, result.mine ? result.mine : lost};
}

void File::begin_write_all(const Write& write) {
  State& s = *state_;
  State::Split split{write, 0};
  split.write.memory = nullptr;  // the program's again when this returns
  if (!s.stages()) {
    split.result = write_all(write);
    s.split = std::move(split);
    return;
  }
  const double begin_s = now_s();
  const std::lock_guard one_at_a_time(s.together);
  s.settle_split();
  s.drain_together();  // another rank's lane may write this rank's bytes, or no lane at all
  exec::WriteRequest r = s.request(write);
  r.earlier = s.untold();
  if (s.verifier) split.verified = s.verifier->begun(r);
  s.pipeline->begin_all(r, s.policy());
  split.seconds = now_s() - begin_s;
  s.split = std::move(split);
  const std::lock_guard lock(s.mutex);
  s.notes.wrote(begin_s, begin_s + s.split->seconds);
  s.notes.counters.staged_bytes += r.range.size();
  if (!s.pipeline->degraded().empty()) ++s.notes.degraded[s.pipeline->degraded()];
}

// Collective: what a write that was begun came to, for whoever ends it.
void File::State::settle_split() {
  if (!split || split->result) return;
  const double begin_s = now_s();
  const exec::WriteOutcome outcome = pipeline->end_all();
  if (verifier) verifier->ended(split->verified, outcome.agreed == ErrorClass::none);
  const std::lock_guard lock(mutex);
  spent_together = pipeline->spent_together();
  const int64_t bytes = split->write.memory_count * split->write.memory_type.size();
  const bool valid = split->write.argument_error == ErrorClass::none;
  note_algorithm(outcome);
  split->result = account(split->write, valid ? bytes : 0, outcome, begin_s - split->seconds);
}

// Local, where no call of all ranks comes any more: what failed here of a write that was begun. The
// lane is drained.
std::optional<Error> File::State::failed_unended() const {
  if (!split) return std::nullopt;
  return split->result ? split->result->mine : pipeline->begun_failure();
}

// What the end of a split write would have told. Others may have ended it.
Result<void> File::State::never_ended() const {
  const ErrorClass failed = worse(split ? split->result->agreed : ErrorClass::none, never_told);
  if (failed == ErrorClass::none) return {};
  return fail(failed, "split write", "it failed, and was begun and never ended");
}

void File::never_told(ErrorClass failed) { state_->never_told = failed; }

WriteResult File::end_write_all() {
  State& s = *state_;
  const std::lock_guard one_at_a_time(s.together);
  s.settle_split();
  WriteResult result = s.split ? *s.split->result : WriteResult();
  s.split.reset();
  return result;
}

void File::State::drain() {
  if (pipeline != nullptr) pipeline->drain();
}

// REQUIRES a pipeline.
void File::State::drain_lane() {
  if (comm->nodes() == 1)
    pipeline->drain_lane();
  else
    drain();
}

// Collective.
double File::State::drain_together() {
  if (pipeline == nullptr) return 0;
  const double begin_s = now_s();
  exec::or_abandon("collective call", [&] { pipeline->drain_together(); });
  end_trail();
  return now_s() - begin_s;
}

// Its file is then as new as what was stored. A thread that writes meanwhile ends it itself.
void File::State::end_trail() {
  const std::unique_lock nobody_writes(by_itself, std::try_to_lock);
  if (nobody_writes) pipeline->end_trail();
}

// Collective.
double File::State::leave_pages() {
  const double begin_s = now_s();
  if (defers && comm->size() == 1) pipeline->let_others_complete_pages();
  drain_together();
  return now_s() - begin_s;
}

// Collective. What all ranks bring is in the pages before the first of them is flushed: neighbours
// meet, and leave in long writes.
void File::State::meet_in_pages() {
  if (may_defer && pipeline != nullptr && comm->size() > 1) (void)comm->barrier();
}

// A count beside the notes, since every accepted write asks.
bool File::State::has_untold() const {
  return pipeline != nullptr && pipeline->staged_failures() != told_failures;
}

void File::State::count_error() {
  const std::lock_guard lock(mutex);
  ++notes.counters.errors;
}

// What was lost since this was asked last, as one error, for a call that gives it.
std::optional<Error> File::State::untold() {
  if (!has_untold()) return std::nullopt;
  const exec::StagedNotes staged = pipeline->staged_notes();
  const std::lock_guard lock(mutex);
  if (staged.failures == told_failures) return std::nullopt;
  told_failures = staged.failures;
  if (seeded_fault("loss_untold")) return std::nullopt;
  const Error error = lost_error(staged);
  note_error(error);
  return error;
}

// By a collective call, before which all have drained: what this rank had not seen as lost yet,
// when it looked, is told with what others had.
void File::State::all_are_told() { told_failures = pipeline->staged_failures(); }

// An error as long as something is lost, whoever was told of it.
Result<void> File::State::all_that_was_accepted() const {
  if (pipeline == nullptr) return {};
  const exec::StagedNotes staged = pipeline->staged_notes();
  if (!staged.failure) return {};
  return tl::unexpected(lost_error(staged));
}

// Whether all ranks' bytes are to be in the file.
bool File::State::is_of_all(Drain to) const {
  return to == Drain::all || (to == Drain::joint && staged_by_all);
}

// REQUIRES a pipeline. Collective calls are in order until what is returned goes.
std::unique_lock<std::mutex> File::State::drain_for(Drain to) {
  std::unique_lock one_at_a_time(together, std::defer_lock);
  if (to == Drain::joint || to == Drain::all) {
    one_at_a_time.lock();
    settle_split();
  }
  if (to == Drain::last) {
    accept_nothing_more();  // callbacks of MPI_Finalize may write, and nobody comes back after them
    pipeline->end_shipping();
    end_trail();
  }
  if (to == Drain::lane)
    drain_lane();
  else if (to == Drain::joint || to == Drain::all)
    drain_together();
  else
    drain();
  return one_at_a_time;
}

void File::State::note_unended() {
  if (split && split->result) return;  // counted where it was done
  const std::optional<Error> failed = failed_unended();
  if (!failed) return;
  const std::lock_guard lock(mutex);
  note_error(*failed);
  ++notes.counters.errors;
}

ErrorClass File::State::flush(Drain to) {
  if (pipeline == nullptr) return ErrorClass::none;
  const bool all = is_of_all(to);
  const auto one_at_a_time = drain_for(to);
  if (to == Drain::last) note_unended();
  const std::optional<Error> mine = untold();
  if (!all) return mine ? mine->error_class : ErrorClass::none;
  const Result<void> agreed = comm::agree(*comm, mine ? tl::unexpected(*mine) : Result<void>());
  if (!agreed) all_are_told();
  staged_by_all = false;
  return agreed ? ErrorClass::none : agreed.error().error_class;
}

ErrorClass File::flush(Drain drain) {
  const ErrorClass failed = state_->flush(drain);
  if (failed != ErrorClass::none) state_->count_error();
  return failed;
}

void File::flush_untold(Drain drain) {
  State& s = *state_;
  if (s.pipeline == nullptr) return;
  const bool all = s.is_of_all(drain);
  std::unique_lock not_closed(s.by_itself, std::defer_lock);
  if (drain == Drain::mine) not_closed.lock();  // by a thread that opens the file once more
  const auto one_at_a_time = s.drain_for(drain);
  if (all) exec::or_abandon(s.comm->barrier());  // another rank's bytes may be in its lane
}

std::optional<Error> File::flush_at_exit() {
  State& s = *state_;
  if (s.pipeline == nullptr || s.comm->nodes() > 1) return std::nullopt;
  s.accept_nothing_more();  // handlers of the program may come later, and nobody after them
  s.drain();
  Result<void> all = s.all_that_was_accepted();
  return all ? s.failed_unended() : std::move(all).error();
}

Off File::accepted_end() const {
  return state_->pipeline != nullptr ? state_->pipeline->pages_end() : 0;
}

bool File::holds_accepted() const {
  return accepted_end() > 0 || (state_->pipeline != nullptr && state_->pipeline->has_staged());
}

void File::State::take_staged_notes(FileNotes& into) const {
  if (pipeline == nullptr) return;
  const exec::StagedNotes staged = pipeline->staged_notes();
  into.counters.staged_bytes += staged.accepted_bytes;
  into.counters.engine_bytes += staged.written_bytes;
  if (staged.failure)
    into.degraded[lost_error(staged).message()] = 1;  // alike on all who were told
  if (staged.taken_over > 0)
    into.degraded
        ["write-behind: file pages were written by ranks that do not own them, since their "
         "owner's I/O thread could not be reached"] += staged.taken_over;
  if (staged.without_memory > 0)
    into.degraded
        ["write-behind: writes went into the file at once, since there was no memory for a file "
         "page"] += staged.without_memory;
  if (const std::string why = info.stager->degraded(); !why.empty()) into.degraded[why] = 1;
  if (!staged.why_not_shipped.empty())
    into.degraded["write-behind: nodes share no pages: " + staged.why_not_shipped] = 1;
}

}  // namespace penstock::engine
