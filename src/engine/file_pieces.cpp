// The short way of a small independent write (docs/decisions/0043): its bytes lie in one piece in
// memory and are one run of the file. Where writes are deferred they go into the page that this
// rank filled last, elsewhere into the file. What is not so, or has something else to be told, goes
// the way of write().

#include <algorithm>

#include "base/ticks.hpp"
#include "engine/file_state.hpp"

namespace penstock::engine {

std::optional<WriteResult> File::write_piece(const Piece& piece) {
  State& s = *state_;
  const std::lock_guard one_at_a_time(s.by_itself);
  if (!s.walk || s.owners_write || s.has_untold()) return {};
  const Ticks begin = ticks();
  const layout::Run run = s.walk->run_at(piece.position_bytes, int64_t(piece.bytes.size()));
  if (run.bytes() != int64_t(piece.bytes.size()) || run.end() == kLastOff) return {};
  if (!s.defers && piece.staged) return {};
  const Verifier::Call call(s.verifier.get());
  auto result = s.defers ? s.accept_piece(piece, run, begin) : s.put_piece(piece, run, begin);
  if (s.verifier && result) call.ended(s.request(piece), result->agreed == ErrorClass::none);
  return result;
}

exec::WriteRequest File::State::request(const Piece& piece) const {
  const auto n = int64_t(piece.bytes.size());
  exec::WriteRequest r{&view, StreamRange::of(piece.position_bytes, n), piece.bytes.data()};
  r.memory_count = n;
  return r;
}

std::optional<WriteResult> File::State::accept_piece(const Piece& piece, const layout::Run& run,
                                                     Ticks begin) {
  const std::optional<Ticks> end = pipeline->stage_run(
      run, piece.bytes.data(), begin, piece.staged ? exec::Returns::at_once : exec::Returns::soon);
  if (!end) return {};
  pieces.add({piece.kind, run.bytes(), pattern_of(run), begin, *end});
  return WriteResult{ErrorClass::none, run.bytes(), {}};
}

std::optional<WriteResult> File::State::put_piece(const Piece& piece, const layout::Run& run,
                                                  Ticks begin) {
  drain();
  if (has_untold()) return {};  // what was staged before is lost: write() tells
  auto outcome = pipeline->write_run(run, piece.bytes.data());
  if (!outcome) return {};
  if (outcome->mine) return account_failed(piece, *std::move(outcome), time_of(begin));
  pieces.add({piece.kind, run.bytes(), pattern_of(run), begin, ticks(), true});
  return WriteResult{ErrorClass::none, run.bytes(), {}};
}

WriteResult File::State::account_failed(const Piece& piece, exec::WriteOutcome outcome,
                                        double begin_s) {
  Write write;
  write.kind = piece.kind;
  write.position_bytes = piece.position_bytes;
  write.memory = piece.bytes.data();
  write.memory_type = layout::LoopTree::bytes(1);
  write.memory_count = int64_t(piece.bytes.size());
  outcome.algorithm = plan::find_algorithm("individual");
  const std::lock_guard lock(mutex);
  spent_alone = pipeline->spent_alone();
  return account(write, write.memory_count, outcome, begin_s);
}

void File::State::keep_walk(const Write& write) {
  if (!walk && write.view == nullptr && view.is_monotone()) walk.emplace(view);
}

PieceCalls::Pattern File::State::pattern_of(const layout::Run& run) const noexcept {
  if (run.count == 1 || run.stride == run.block) return PieceCalls::Pattern::contiguous;
  return view_regular ? PieceCalls::Pattern::strided : PieceCalls::Pattern::irregular;
}

void PieceCalls::add(const Call& call) noexcept {
  calls_[size_t(call.kind)].add(1);
  sizes_[size_t(size_bucket(call.bytes))].add(1);
  patterns_[size_t(call.pattern)].add(1);
  if (call.in_file) in_file_.add(call.bytes);
  inside_.add(std::max<Ticks>(0, call.end - call.begin));
  if (first_.sum() == 0) first_.set(call.begin);
  last_.set(call.end);
}

void PieceCalls::add_to(FileNotes& notes) const {
  if (first_.sum() == 0) return;
  Counters& c = notes.counters;
  int64_t calls = 0;
  for (size_t kind = 0; kind < calls_.size(); ++kind) {
    c.calls[kind] += calls_[kind].sum();
    calls += calls_[kind].sum();
  }
  for (size_t bucket = 0; bucket < sizes_.size(); ++bucket) c.sizes[bucket] += sizes_[bucket].sum();
  c.contiguous_calls += patterns_[size_t(Pattern::contiguous)].sum();
  c.strided_calls += patterns_[size_t(Pattern::strided)].sum();
  c.irregular_calls += patterns_[size_t(Pattern::irregular)].sum();
  c.engine_bytes += in_file_.sum();
  c.call_ns += ns(seconds_of(inside_.sum()));
  notes.wrote(time_of(first_.sum()), time_of(last_.sum()));
  notes.ran(plan::find_algorithm("individual"), calls);
}

}  // namespace penstock::engine
