// An open file: what it says of itself, and what is decided per view, per write and at close.
#include "engine/file.hpp"

#include <utility>

#include "base/clock.hpp"
#include "comm/agreement.hpp"
#include "engine/file_state.hpp"
#include "engine/report.hpp"
#include "engine/select.hpp"
#include "exec/abandon.hpp"
#include "io/probe.hpp"

namespace penstock::engine {
namespace {

// A filetype whose description is larger than this is passed through: it would not fit a message.
constexpr size_t kMostDescriptionBytes = size_t{1} << 30;

void tell(std::optional<Error>* to, const Result<void>& mine) {
  if (to != nullptr && !mine) *to = mine.error();
}

}  // namespace

File::File(std::unique_ptr<State> state) : state_(std::move(state)) {}

File::~File() {
  // It drains. Its chore must end before what it writes through: other ranks may have pages yet.
  state_->pipeline.reset();
  state_->sync.reset();  // it may be syncing in a thread of its own
  if (state_->file) (void)state_->file->close();
}

bool File::served() const noexcept {
  const State& s = *state_;
  // In atomic mode, too: all ranks come to a collective call, and none leaves it before all of them
  // have written (docs/decisions/0069).
  const bool in_order = !s.atomic || s.seen_by_all;
  return s.never_served.empty() && s.view_unserved.empty() && in_order;
}

bool File::is_atomic() const noexcept { return state_->atomic; }

bool File::serves_independent() const noexcept {
  const State& s = *state_;
  return served() && !s.atomic && (s.owners_write || s.seen_by_all);
}

bool File::serves_nothing() const noexcept {
  return !state_->never_served.empty() && !state_->never_read.empty();
}

const std::string& File::why_unserved() const noexcept {
  static const std::string kAtomic = "atomic mode";
  static const std::string kUnits =
      "independent writes of several nodes could share a unit of this network file system";
  static const std::string kUnitsToOne =
      kUnits + " (write_behind_progress = thread would bring them to one)";
  if (!state_->never_served.empty()) return state_->never_served;
  if (!state_->view_unserved.empty()) return state_->view_unserved;
  if (state_->atomic) return kAtomic;
  return state_->thread_may_help() ? kUnitsToOne : kUnits;
}

const std::optional<Error>& File::open_failure() const noexcept { return state_->open_failure; }

const Config& File::config() const noexcept { return state_->info.config; }

HintValues File::hints_in_effect() const {
  if (!served()) return {};
  Config in_effect = config();
  in_effect.method = state_->collective;
  return engine::hints_in_effect(in_effect, state_->team(), state_->file_system.geometry);
}

const layout::FileView& File::view() const noexcept { return state_->view; }
comm::Comm& File::comm() noexcept { return *state_->comm; }

// --- View ---

std::string why_view_unserved(const layout::FileView& view) {
  if (!view.is_monotone()) return "the file view is not monotone";
  if (view.filetype().memory_bytes() > kMostDescriptionBytes)
    return "the filetype's description is larger than 1 GiB";
  return "";
}

void File::State::take_view(layout::FileView given) {
  view = std::move(given);
  walk.reset();
  view_regular = is_regular(view);
}

void File::set_served_view(layout::FileView view) {
  state_->take_view(std::move(view));
  state_->view_unserved.clear();
  state_->served_bytes = kWholeStream;
  state_->some_view_is_limited = false;
}

void File::set_view(layout::FileView view, const std::string& unserved_why, int64_t served_bytes) {
  State& s = *state_;
  s.take_view(std::move(view));
  if (serves_nothing()) return;
  const std::string why = unserved_why.empty() ? why_view_unserved(s.view) : unserved_why;
  comm::Agreement agreement;
  const auto unserved = agreement.some(!why.empty());
  const auto limited = agreement.some(served_bytes != kWholeStream);
  exec::or_abandon(agreement.reach(*s.comm));
  s.view_unserved =
      why.empty() && agreement[unserved] ? "another rank's file view cannot be served" : why;
  s.served_bytes = served_bytes;
  s.some_view_is_limited = agreement[limited];
}

bool File::view_is_limited() const noexcept { return state_->some_view_is_limited; }

bool File::keeps_to_view(int64_t end_bytes, Company company) {
  int64_t leaves[] = {end_bytes > state_->served_bytes ? 1 : 0};
  if (company == Company::together) exec::or_abandon(state_->comm->all_max(leaves));
  return leaves[0] == 0;
}

void File::set_atomic(bool atomic) { state_->atomic = atomic; }

// --- Write ---

const layout::FileView& File::State::view_of(const Write& write) const noexcept {
  return write.view != nullptr ? *write.view : view;
}

exec::WriteRequest File::State::request(const Write& write) const {
  exec::WriteRequest r;
  r.view = &view_of(write);
  r.argument_error = write.argument_error;
  if (write.argument_error != ErrorClass::none) return r;
  r.range = {write.position_bytes,
             write.position_bytes + write.memory_count * write.memory_type.size()};
  r.memory = static_cast<const std::byte*>(write.memory);
  r.memory_type = write.memory_type;
  r.memory_count = write.memory_count;
  return r;
}

exec::Pipeline::Policy File::State::policy() const {
  const Method& m = collective;
  return {fixed(m.algorithm, team(), file_system.geometry),
          m.parameters,
          &decide,
          m.exchange,
          m.pack,
          atomic};
}

WriteResult File::write_all(const Write& write) {
  State& s = *state_;
  const double begin_s = now_s();
  const std::lock_guard one_at_a_time(s.together);
  s.settle_split();
  s.drain_together();
  exec::WriteRequest r = s.request(write);
  r.earlier = s.untold();
  const Verifier::Call call(s.verifier.get());
  const exec::WriteOutcome outcome = s.pipeline->write_all(r, s.policy());
  call.ended(r, outcome.agreed == ErrorClass::none);
  s.staged_by_all = false;  // all ranks have drained, and met
  if (outcome.agreed != ErrorClass::none) s.all_are_told();
  const std::lock_guard lock(s.mutex);
  s.spent_together = s.pipeline->spent_together();
  if (!s.pipeline->degraded().empty()) ++s.notes.degraded[s.pipeline->degraded()];
  s.note_algorithm(outcome);
  return s.account(write, r.range.size(), outcome, begin_s);
}

WriteResult File::write(const Write& write) {
  const double begin_s = now_s();
  const std::lock_guard one_at_a_time(state_->by_itself);
  return state_->write(write, begin_s);
}

// REQUIRES by_itself: a handle that is opened beside this one changes how.
WriteResult File::State::write(const Write& write, double begin_s) {
  if (defers) return accept(write, exec::Returns::soon, begin_s);
  if (owners_write) return write_by_owners(write, begin_s);
  drain();
  const exec::WriteRequest r = request(write);
  const Verifier::Call call(verifier.get());
  exec::WriteOutcome outcome = pipeline->write_alone(r);
  call.ended(r, outcome.agreed == ErrorClass::none);
  outcome.algorithm = plan::find_algorithm("individual");
  const std::optional<Error> earlier = untold();
  const std::lock_guard lock(mutex);
  spent_alone = pipeline->spent_alone();
  keep_walk(write);
  WriteResult result = account(write, r.range.size(), outcome, begin_s);
  if (!earlier) return result;
  if (result.agreed == ErrorClass::none) ++notes.counters.errors;
  result.agreed = worse(result.agreed, earlier->error_class);
  return result;
}

WriteResult File::State::account(const Write& write, int64_t bytes,
                                 const exec::WriteOutcome& outcome, double begin_s) {
  const bool good = outcome.agreed == ErrorClass::none;
  const int64_t in_file = good ? bytes : outcome.prefix_bytes;
  const double end_s = now_s();
  notes.wrote(begin_s, end_s);
  count_call(write, bytes, end_s - begin_s);
  Counters& c = notes.counters;
  c.engine_bytes += in_file;
  notes.ran(outcome.algorithm);
  if (!good) {
    ++c.errors;
    if (outcome.mine) note_error(*outcome.mine);
  }
  return {outcome.agreed, good ? bytes : in_file - in_file % view_of(write).etype_bytes(),
          outcome.mine};
}

// Of a collective write. REQUIRES mutex.
void File::State::note_algorithm(const exec::WriteOutcome& outcome) {
  const plan::Algorithm* const named = info.config.method.algorithm;
  if (named == nullptr || outcome.algorithm == named) return;
  const char* const why = atomic ? "ranks whose bytes may overlap write one by one in atomic mode"
                                 : "this file system's units must be owned by one node";
  ++notes.degraded[std::string("collective writes ran another algorithm: ") + why];
}

// --- Sync and close ---

ErrorClass File::sync(std::optional<Error>* own) {
  return exec::or_abandon("sync", [&] { return sync_together(own); });
}

ErrorClass File::sync_together(std::optional<Error>* own) {
  State& s = *state_;
  {
    const std::lock_guard one_at_a_time(s.together);
    s.settle_split();
  }
  const double begin_s = now_s();
  s.meet_in_pages();
  const double writing_s = s.drain_together();
  (void)s.untold();  // told now
  Result<void> mine = s.sync ? s.sync->sync(io::SyncKind::full) : Result<void>();
  if (s.pipeline != nullptr) s.pipeline->settle_syncs();
  if (Result<void> accepted = s.all_that_was_accepted(); !accepted) mine = accepted;
  const Result<void> agreed = comm::agree(*s.comm, mine);
  if (!agreed && s.pipeline != nullptr) s.all_are_told();  // what a sync of another rank lost, too
  s.staged_by_all = false;
  const std::lock_guard lock(s.mutex);
  const double end_s = now_s();
  ++s.notes.counters.calls[size_t(CallKind::sync)];
  s.notes.counters.sync_ns += ns(end_s - begin_s - writing_s);
  s.notes.synced_s = agreed ? end_s : 0;
  if (!mine) s.note_error(mine.error());
  if (!agreed) ++s.notes.counters.errors;
  tell(own, mine);
  return agreed ? ErrorClass::none : agreed.error().error_class;
}

// Local. A thread that opens the file beside this handle may have it write until then.
Result<void> File::State::close_file() {
  const std::lock_guard one_at_a_time(by_itself);
  pipeline->let_pages_go();  // others may fill them yet, through other handles
  return file->close();
}

ErrorClass File::close(FileReport& report, std::optional<Error>* own) {
  return exec::or_abandon("close", [&] { return close_together(report, own); });
}

ErrorClass File::close_together(FileReport& report, std::optional<Error>* own) {
  State& s = *state_;
  Counters& c = s.notes.counters;
  s.settle_split();
  const double begin_s = now_s();
  // No rank fills pages through another handle, while the first ones stop looking after theirs.
  if (s.lends_on_all && !s.may_defer && s.comm->size() > 1) (void)s.comm->barrier();
  s.lends = false;
  s.meet_in_pages();
  double in_phases_s = s.leave_pages();
  if (s.pipeline != nullptr) s.pipeline->close_shipping();
  (void)s.untold();  // told now
  Result<void> mine = s.all_that_was_accepted();
  if (s.verifier) {
    s.notes.verification = s.verify();
    if (mine && s.notes.verification.mismatched_bytes > 0)
      mine = fail(ErrorClass::io, "verify",
                  std::to_string(s.notes.verification.mismatched_bytes) + " bytes of " +
                      s.info.path + " differ from what was handed over");
  }
  s.note_unwritten();
  if (s.file) {
    const double sync_begin_s = now_s();
    const Result<bool> synced = s.sync->at_close();
    if (s.pipeline != nullptr) s.pipeline->settle_syncs();
    const double sync_s = now_s() - sync_begin_s;
    c.sync_ns += ns(sync_s);
    in_phases_s += sync_s;
    if (synced && *synced && s.info.config.method.sync->pushes) s.notes.synced_s = now_s();
    const Result<void> closed = s.close_file();
    s.note_mechanism();
    if (mine && !synced) mine = tl::unexpected(synced.error());
    if (mine && !closed) mine = closed;
  }
  if (mine) mine = s.never_ended();
  if (!mine) s.note_error(mine.error());
  tell(own, mine);
  const Result<void> agreed = comm::agree(*s.comm, mine);
  if (!agreed) ++c.errors;
  c.close_ns += ns(now_s() - begin_s - in_phases_s);
  FileNotes notes;
  {  // a thread that opens the file beside this handle notes that
    const std::lock_guard lock(s.mutex);
    s.take_spent_alone();
    notes = s.notes_now();
  }
  report = merge(*s.comm, notes, describe(s.info, s.file_system));
  report.closed = true;
  return agreed ? ErrorClass::none : agreed.error().error_class;
}

}  // namespace penstock::engine
