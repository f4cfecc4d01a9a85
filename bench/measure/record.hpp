// What one worker has to say about a run, and how the records of all become the line of JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "comm/comm.hpp"
#include "cpus.hpp"
#include "parameters.hpp"
#include "run.hpp"
#include "template.hpp"
#include "verify.hpp"

namespace penstock::measure {

using Json = nlohmann::ordered_json;

struct Record {
  std::optional<Failure> failure;
  Phases phases;
  double application_s = 0, done_s = 0, overhead_s = 0;
  double actual_s = 0;  // until this worker's drain was over; 0: not drained
  int64_t bytes = 0;
  std::vector<Call> calls;
  std::optional<CpuTimes> cpus;        // of its node while the clock ran; of a node's worker 0
  std::optional<EngineReport> engine;  // of the file's worker 0
  std::optional<Check> check;
  std::string check_file;          // where the first wrong byte is
  std::vector<std::string> notes;  // what was not as asked
};

// Both rates in bins; on worker 0.
struct Series {
  double bin_s = 0;
  std::vector<int64_t> application_bytes;
  std::optional<std::vector<int64_t>> actual_bytes;
  std::string source, why;
  int64_t readings = 0;
  double busy_s = 0;
  std::optional<int64_t> left_bytes;  // unwritten after the drain, as the source says
};

// Collective: the records of all workers on worker 0, in their order; empty elsewhere.
Result<std::vector<Record>> gather_records(comm::Comm& team, const Record& mine);

// The contract's line. `verify_why`: why nothing was verified.
Json line_of(const Program& program, const Parameters& parameters, const Place& place, int nodes,
             const std::vector<Record>& records, const std::optional<Series>& series,
             const std::string& verify_why);

}  // namespace penstock::measure
