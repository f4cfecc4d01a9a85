// FileReport to JSON and back: the `files` entries of the job log, and what processes send each
// other to merge their logs. docs/reference/job-log.schema.json describes the result.
#pragma once

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "engine/statistics.hpp"

namespace penstock::engine {

nlohmann::json to_json(const FileReport& report);
// Fails with ErrorClass::communication when a member is missing or has another type.
Result<FileReport> report_from_json(const nlohmann::json& json);

}  // namespace penstock::engine
