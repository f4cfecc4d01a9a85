// Writes by one rank alone, what is staged, and the face that callers see.
#include "exec/pipeline.hpp"

#include <algorithm>
#include <exception>

#include "exec/abandon.hpp"
#include "exec/pipeline_state.hpp"

namespace penstock::exec {
namespace {

// By the short way. What is larger has its own ways to be written (alone.cpp), and takes so long
// that no way is.
constexpr int64_t kMostPieceBytes = int64_t{1} << 20;

StagedNotes joined(StagedNotes a, StagedNotes b) {
  a.accepted_bytes += b.accepted_bytes;
  a.written_bytes += b.written_bytes;
  a.lost_bytes += b.lost_bytes;
  a.failures += b.failures;
  a.failure = worst_of(a.failure, b.failure);
  a.lost.insert(a.lost.end(), b.lost.begin(), b.lost.end());
  a.lost_told_in_part = a.lost_told_in_part || b.lost_told_in_part;
  a.spent = a.spent + b.spent;
  a.taken_over += b.taken_over;
  a.without_memory += b.without_memory;
  if (a.why_not_shipped.empty()) a.why_not_shipped = std::move(b.why_not_shipped);
  return a;
}

}  // namespace

WriteOutcome Pipeline::State::alone(const WriteRequest& request, const AloneContext& context) {
  const StreamRange own = taken_part(request);
  UserData data(request.memory, request.memory_type, request.memory_count, own.begin);
  WriteOutcome outcome = exec::write_alone(context, *request.view, own, data);
  if (request.argument_error == ErrorClass::none) return outcome;
  outcome.agreed = request.argument_error;
  outcome.mine = Error{request.argument_error, 0, "write", "the arguments are not valid"};
  return outcome;
}

// Copies the bytes to where the I/O thread takes them from.
WriteOutcome Pipeline::State::stage(const WriteRequest& request,
                                    const std::shared_ptr<StreamAccount>& account,
                                    PhaseTimes& spent, int64_t& last) {
  WriteOutcome outcome;
  if (request.argument_error != ErrorClass::none) {
    outcome.mine = Error{request.argument_error, 0, "write", "the arguments are not valid"};
  } else {
    UserData data(request.memory, request.memory_type, request.memory_count, request.range.begin);
    StagedStream staged = stage_stream(staging_area(), {file, sync}, account, *request.view,
                                       request.range, data, spent);
    outcome.prefix_bytes = staged.bytes;
    outcome.mine = std::move(staged.mine);
    last = staged.last;
  }
  if (outcome.mine) outcome.agreed = outcome.mine->error_class;
  return outcome;
}

// Into the pages that the node shares; where the machine has no memory for any, or no thread that
// bounds their stay, into the file.
WriteOutcome Pipeline::State::accept(const WriteRequest& request) {
  WriteOutcome outcome;
  if (serves) outcome = write_behind->write({file, sync}, request);
  StreamRange rest = request.range;
  rest.begin += outcome.prefix_bytes;
  if (rest.empty() || outcome.mine) return outcome;
  if (write_behind->shipping() != nullptr && write_behind->shipping()->owners_alone()) {
    outcome.mine = Error{ErrorClass::no_memory, 0, "write behind",
                         "no memory for file pages, and no other way into this file system"};
    outcome.agreed = outcome.mine->error_class;
    return outcome;
  }
  flush_pages();
  UserData data(request.memory, request.memory_type, request.memory_count, request.range.begin);
  write_behind->settle({file, sync});
  const int64_t writes = write_behind->writes();
  WriteOutcome last = exec::write_alone(
      {file, staging_alone, sync, by_itself.times, by_itself.traffic}, *request.view, rest, data);
  write_behind->note_written({file, sync}, last, request.view->extent_of(rest), writes);
  last.prefix_bytes += outcome.prefix_bytes;
  return last;
}

// What another handle of this process did before this call enters the file before it.
void Pipeline::State::let_others_finish() {
  if (lane.use_count() > 1) stager->drain(*lane);
}

WriteOutcome Pipeline::State::stage_alone(const WriteRequest& request) {
  const bool valid = request.argument_error == ErrorClass::none;
  const bool behind = write_behind != nullptr && pages_for == PagesFor::own_writes;
  if (behind) let_others_finish();
  if (behind && valid) return accept(request);
  flush_pages();
  int64_t last = 0;
  return stage(request, staged_alone, by_itself.times, last);
}

void Pipeline::State::flush_pages() {
  if (write_behind != nullptr) write_behind->flush({file, sync});
}

void Pipeline::State::stop_receiving() {
  if (receives) stager->remove(receiving);
  receives = false;
}

void Pipeline::State::end_shipping() {
  stop_receiving();
  if (write_behind != nullptr) write_behind->end_alone({file, sync});
}

// --- The public face ---

Pipeline::Pipeline(comm::Comm& comm, io::MechanismFile& file, const layout::Geometry& geometry)
    : state_(std::make_unique<State>(comm, file, geometry)) {}
Pipeline::~Pipeline() {
  state_->end_shipping();  // other ranks may be gone
  drain();
  if (state_->serves) state_->stager->remove(state_->service);
}

WriteOutcome Pipeline::write_all(const WriteRequest& request, const Policy& policy) {
  return or_abandon("collective write", [&] {
    state_->begin(request, policy, State::How::written);
    return state_->end();
  });
}
void Pipeline::begin_all(const WriteRequest& request, const Policy& policy) {
  or_abandon("collective write", [&] { state_->begin(request, policy, State::How::staged); });
}
std::optional<Error> Pipeline::begun_failure() const {
  const auto& begun = state_->begun;
  std::optional<Error> failed = worst_of(begun.mine, begun.earlier);
  if (begun.alone) failed = worst_of(failed, begun.alone->mine);
  if (begun.plan != nullptr) failed = worst_of(failed, state_->account_of_begun().failure());
  if (begun.stream != nullptr) failed = worst_of(failed, begun.stream->notes().failure);
  return failed;
}

WriteOutcome Pipeline::end_all() {
  return or_abandon("collective write", [&] { return state_->end(); });
}
WriteOutcome Pipeline::write_alone(const WriteRequest& request) {
  return state_->alone(request, state_->by_this_rank());
}
std::optional<WriteOutcome> Pipeline::write_run(const layout::Run& run, const std::byte* bytes) {
  State& s = *state_;
  if (run.bytes() > std::min(kMostPieceBytes, in_place_bytes(s.sync))) return {};
  return exec::write_run(s.by_this_rank(), run, bytes);
}
WriteOutcome Pipeline::stage_alone(const WriteRequest& request) {
  return state_->stage_alone(request);
}
std::optional<Ticks> Pipeline::stage_run(const layout::Run& run, const std::byte* bytes,
                                         Ticks begin, Returns returns) {
  State& s = *state_;
  if (s.write_behind == nullptr || !s.serves) return {};
  return s.write_behind->add({s.file, s.sync}, run, bytes, begin, returns);
}
void Pipeline::drain() {
  drain_lane();
  state_->flush_pages();
}
void Pipeline::drain_lane() {
  if (state_->stager != nullptr) state_->stager->drain(*state_->lane);
}
Off Pipeline::pages_end() const {
  return state_->write_behind != nullptr ? state_->write_behind->end() : 0;
}
bool Pipeline::has_staged() const {
  return state_->stager != nullptr && !state_->stager->is_drained(*state_->lane);
}
void Pipeline::drain_together() {
  state_->trail_ends = true;
  drain_lane();
  State& s = *state_;
  if (s.write_behind != nullptr) s.write_behind->flush_together({s.file, s.sync});
}
void Pipeline::flush_pages() { state_->flush_pages(); }
void Pipeline::settle_syncs() {
  State& s = *state_;
  s.staged_alone->settle(s.sync);
  if (s.write_behind != nullptr) s.write_behind->settle({s.file, s.sync});
}
void Pipeline::let_others_complete_pages() {
  State& s = *state_;
  if (s.write_behind != nullptr) s.write_behind->let_others_complete({s.file, s.sync});
}
bool Pipeline::start_shipping() {
  State& s = *state_;
  s.receives = s.serves && s.stager->add(s.receiving);
  return s.receives;
}
void Pipeline::stop_receiving() { state_->stop_receiving(); }
void Pipeline::end_shipping() { state_->end_shipping(); }
void Pipeline::close_shipping() {
  State& s = *state_;
  s.stop_receiving();
  if (s.write_behind != nullptr && s.write_behind->shipping() != nullptr)
    s.write_behind->shipping()->close();
}
StagedNotes Pipeline::staged_notes() const {
  StagedNotes notes = state_->staged_alone->notes();
  if (state_->write_behind != nullptr)
    notes = joined(std::move(notes), state_->write_behind->notes());
  return notes;
}
int64_t Pipeline::staged_failures() const {
  const WriteBehind* const behind = state_->write_behind.get();
  return state_->staged_alone->failures() + (behind != nullptr ? behind->failures() : 0);
}

void Pipeline::set_write_behind(std::unique_ptr<WriteBehind> behind, double seconds,
                                PagesFor pages_for) {
  state_->write_behind = std::move(behind);
  state_->pages_for = pages_for;
  state_->service.seconds = seconds;
  state_->serves = state_->stager->add(state_->service);
}
bool Pipeline::share_pages_of(Pipeline& other, double seconds) {
  State& s = *state_;
  const bool same_thread = s.stager == other.state_->stager;
  if (!same_thread || !other.state_->serves) return false;
  std::unique_ptr<WriteBehind> beside = other.state_->write_behind->beside();
  if (beside == nullptr) return false;
  s.lane = other.state_->lane;
  set_write_behind(std::move(beside), seconds, PagesFor::own_writes);
  return true;
}
void Pipeline::end_trail() {
  state_->trail_ends = false;
  state_->trail.let_go();
}
void Pipeline::let_pages_go() {
  end_trail();
  State& s = *state_;
  if (s.serves) s.stager->remove(s.service);
  s.serves = false;
  if (s.write_behind != nullptr) s.write_behind->let_go();
}
void Pipeline::set_stager(std::shared_ptr<Stager> stager, int64_t limit_bytes) {
  state_->stager = std::move(stager);
  state_->staged_limit_bytes = limit_bytes;
}
void Pipeline::set_sync(io::FileSync* sync) noexcept {
  state_->sync = sync;
  state_->pages.set_sync(sync);
}
const std::string& Pipeline::degraded() const noexcept { return state_->degraded; }
const Spent& Pipeline::spent_together() const noexcept { return state_->together; }
const Spent& Pipeline::spent_alone() const noexcept { return state_->by_itself; }

}  // namespace penstock::exec
