// The measured loop. Workers agree on errors before every iteration, in place of the template's
// barrier, which costs the same: after an error all of them stop at the same iteration.
#include "template.hpp"

#include <algorithm>

#include "base/clock.hpp"

namespace penstock::measure {

Loop::Loop(comm::Comm& team, Route& route, const Memory& memory, const Plan& plan, double bin_s,
           Pulse& pulse)
    : team_(team),
      route_(route),
      memory_(memory),
      plan_(plan),
      pulse_(pulse),
      bins_(bin_s > 0 ? bin_s : 1.0) {
  calls_.reserve(size_t(plan.iterations));  // no allocation inside the loop
}

void Loop::fail(const char* where, Error error) {
  if (!failure_) failure_ = Failure{where, std::move(error)};
}

template <class Do>
void Loop::phase(const char* where, double& sum_s, Do work) {
  const Stopwatch watch(sum_s);
  pulse_.enter(where);
  if (Result<void> done = work(); !done) fail(where, done.error());
  pulse_.leave();
}

ErrorClass Loop::agree() {
  int64_t worst[] = {failure_ ? int64_t(failure_->error.error_class) : 0};
  pulse_.enter("barrier");
  const auto met = team_.all_max(worst);
  pulse_.leave();
  if (!met) {
    fail("barrier", met.error());
    return met.error().error_class;
  }
  return ErrorClass(worst[0]);
}

void Loop::compute(int64_t iteration) {
  const double begin_s = now_s();
  if (plan_.fill == Fill::each && plan_.op == Op::write) memory_.fill(iteration);
  while (now_s() - begin_s < plan_.compute_s) {
  }
  phases_.compute_s += now_s() - begin_s;
}

void Loop::call(int64_t iteration) {
  const Piece piece{iteration * plan_.bytes_per_iteration, memory_.window(iteration)};
  const char* where = plan_.op == Op::write ? "write" : "read";
  const double begin_s = now_s();
  pulse_.enter(where, begin_s);
  Result<void> done;
  if (measuring_) done = plan_.op == Op::write ? route_.write(piece) : route_.read(piece);
  pulse_.leave();
  const double end_s = now_s();
  if (!done) fail(where, done.error());
  const Call taken{begin_s - zero_s_, end_s - begin_s};
  phases_.write_s += taken.seconds;
  calls_.push_back(taken);
  done_s_ = end_s - zero_s_;
  if (!done) return;
  bytes_ += plan_.bytes_per_iteration;
  bins_.add(taken, plan_.bytes_per_iteration);
}

// Decided by the file's bytes, so that all workers of a file sync together.
bool Loop::sync_is_due(int64_t iteration) const noexcept {
  if (plan_.sync_every_bytes == 0 || plan_.op == Op::read) return false;
  const int64_t before = iteration * plan_.file_bytes_per_iteration;
  const int64_t now = before + plan_.file_bytes_per_iteration;
  return now / plan_.sync_every_bytes > before / plan_.sync_every_bytes;
}

// False when all workers are to stop.
bool Loop::iterate(int64_t iteration) {
  compute(iteration);
  if (plan_.barrier == Barrier::each && agree() != ErrorClass::none) return false;
  // Without a barrier nobody knows of another's error: collective calls and syncs go on, so that
  // nobody waits in one for ever, and own calls end with the first own error.
  if (plan_.access != Access::independent || !failure_) call(iteration);
  if (measuring_ && sync_is_due(iteration))
    phase("sync", phases_.sync_s, [&] { return route_.sync(); });
  return true;
}

ErrorClass Loop::run() {
  zero_s_ = now_s();
  phase("open", phases_.open_s, [&] { return route_.open(); });
  ErrorClass agreed = agree();
  for (int64_t i = 0; agreed == ErrorClass::none && i < plan_.iterations; ++i)
    if (!iterate(i)) break;
  if (agreed == ErrorClass::none) agreed = agree();
  if (agreed == ErrorClass::none && plan_.end == End::sync && plan_.op == Op::write)
    phase("sync", phases_.sync_s, [&] { return route_.sync(); });
  agreed = worse(agreed, agree());
  phase("close", phases_.close_s, [&] { return route_.close(); });
  application_s_ = now_s() - zero_s_;
  return worse(agreed, agree());
}

double Loop::overhead_s() {
  Loop empty(team_, route_, memory_, plan_, 1.0, pulse_);
  empty.measuring_ = false;
  empty.plan_.compute_s = 0;
  empty.plan_.fill = Fill::once;
  empty.plan_.sync_every_bytes = 0;
  constexpr int64_t kEnough = 256;  // each may cost a barrier of milliseconds
  const int64_t iterations = std::min(plan_.iterations, kEnough);
  (void)empty.agree();
  const double begin_s = empty.zero_s_ = now_s();
  for (int64_t i = 0; i < iterations; ++i) (void)empty.iterate(i);
  return (now_s() - begin_s) / double(iterations);
}

}  // namespace penstock::measure
