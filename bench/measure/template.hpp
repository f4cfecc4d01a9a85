// benson-2003's template, for one worker: loop of compute and fill, barrier, write, perhaps sync;
// final sync; close. The clock runs from before the open to after the close.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/comm.hpp"
#include "memory.hpp"
#include "parameters.hpp"
#include "route.hpp"
#include "series.hpp"
#include "watchdog.hpp"

namespace penstock::measure {

struct Failure {
  std::string where;  // "open", "write", "read", "sync", "close", "drain", ...
  Error error;
};

struct Phases {  // seconds of this worker
  double open_s = 0, compute_s = 0, write_s = 0, sync_s = 0, close_s = 0, drain_s = 0;
};

struct Plan {  // what one worker does
  Op op = Op::write;
  Access access = Access::collective;
  int64_t iterations = 0;
  int64_t bytes_per_iteration = 0, file_bytes_per_iteration = 0;
  double compute_s = 0;  // of this worker in an iteration
  Fill fill = Fill::once;
  Barrier barrier = Barrier::each;
  End end = End::sync;
  int64_t sync_every_bytes = 0;  // of the file; 0: never
};

class Loop {
 public:
  Loop(comm::Comm& team, Route& route, const Memory& memory, const Plan& plan, double bin_s,
       Pulse& pulse);

  // Collective over all workers, who have just left a barrier; the same ErrorClass on all.
  ErrorClass run();
  // What an iteration costs besides computing, filling, and the call: a part of the same loop
  // with the call left out. Collective. Seconds, this worker's.
  double overhead_s();

  double zero_s() const noexcept { return zero_s_; }  // when the clock started
  double application_s() const noexcept { return application_s_; }
  double done_s() const noexcept { return done_s_; }  // the last call returned
  int64_t bytes() const noexcept { return bytes_; }   // of calls that succeeded
  const Phases& phases() const noexcept { return phases_; }
  const std::vector<Call>& calls() const noexcept { return calls_; }
  const Bins& bins() const noexcept { return bins_; }
  const std::optional<Failure>& failure() const noexcept { return failure_; }

  Phases& phases() noexcept { return phases_; }

 private:
  template <class Do>
  void phase(const char* where, double& sum_s, Do work);
  void fail(const char* where, Error error);
  ErrorClass agree();
  void compute(int64_t iteration);
  void call(int64_t iteration);
  bool sync_is_due(int64_t iteration) const noexcept;
  bool iterate(int64_t iteration);

  comm::Comm& team_;
  Route& route_;
  const Memory& memory_;
  Plan plan_;
  Pulse& pulse_;
  double zero_s_ = 0, application_s_ = 0, done_s_ = 0;
  int64_t bytes_ = 0;
  bool measuring_ = true;
  Phases phases_;
  std::vector<Call> calls_;
  Bins bins_;
  std::optional<Failure> failure_;
};

}  // namespace penstock::measure
