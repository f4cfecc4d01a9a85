// What all files of a job did together: `totals` of its log, and its line at the end.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.hpp"
#include "engine/statistics.hpp"

namespace penstock::engine {

// Once more, or so many times: a thousand different ones, and the rest together.
void add_reason(std::map<std::string, int64_t>& degraded, const std::string& why, int64_t times);

struct JobTotals {
  int64_t engine_bytes = 0, passthrough_bytes = 0, read_bytes = 0, engine_read_bytes = 0,
          errors = 0, passthrough_calls = 0, verified_bytes = 0, unverified_bytes = 0,
          mismatched_bytes = 0;
  int64_t files_not_listed = 0;  // whose reports are here alone
  // Reason: how often. Some name a file: of very many reasons the rest is counted as one.
  std::map<std::string, int64_t> degraded;

  void add(const FileReport& report);
  void add(const JobTotals& more);
};

nlohmann::json to_json(const JobTotals& totals);
// Fails with ErrorClass::communication when a member is missing or has another type.
Result<JobTotals> totals_from_json(const nlohmann::json& json);

}  // namespace penstock::engine
