// One table of members serves sums and JSON, so that none is summed and not told.
#include "engine/job_totals.hpp"

#include <array>

namespace penstock::engine {
namespace {

using nlohmann::json;

struct MemberName {
  const char* name;
  int64_t JobTotals::*member;
};

constexpr std::array<MemberName, 10> kMembers = {{
    {"engine_bytes", &JobTotals::engine_bytes},
    {"passthrough_bytes", &JobTotals::passthrough_bytes},
    {"read_bytes", &JobTotals::read_bytes},
    {"engine_read_bytes", &JobTotals::engine_read_bytes},
    {"errors", &JobTotals::errors},
    {"passthrough_calls", &JobTotals::passthrough_calls},
    {"verified_bytes", &JobTotals::verified_bytes},
    {"unverified_bytes", &JobTotals::unverified_bytes},
    {"mismatched_bytes", &JobTotals::mismatched_bytes},
    {"files_not_listed", &JobTotals::files_not_listed},
}};

constexpr size_t kMostReasons = 1000;

}  // namespace

void add_reason(std::map<std::string, int64_t>& degraded, const std::string& why, int64_t times) {
  const bool has_room = degraded.size() < kMostReasons || degraded.contains(why);
  degraded[has_room ? why : "other reasons"] += times;
}

void JobTotals::add(const FileReport& r) {
  engine_bytes += r.sum.engine_bytes;
  passthrough_bytes += r.sum.passthrough_bytes;
  read_bytes += r.sum.read_bytes;
  engine_read_bytes += r.sum.engine_read_bytes;
  errors += r.sum.errors;
  passthrough_calls += r.sum.passthrough_calls;
  verified_bytes += r.verified_bytes;
  unverified_bytes += r.unverified_bytes;
  mismatched_bytes += r.mismatched_bytes;
  for (const auto& [why, times] : r.degraded) add_reason(degraded, why, times);
}

void JobTotals::add(const JobTotals& more) {
  for (const MemberName& n : kMembers) this->*n.member += more.*n.member;
  for (const auto& [why, times] : more.degraded) add_reason(degraded, why, times);
}

json to_json(const JobTotals& totals) {
  json j = {{"degraded", json(totals.degraded)}};
  for (const MemberName& n : kMembers) j[n.name] = totals.*n.member;
  return j;
}

Result<JobTotals> totals_from_json(const json& j) {
  try {
    JobTotals totals;
    for (const MemberName& n : kMembers) j.at(n.name).get_to(totals.*n.member);
    j.at("degraded").get_to(totals.degraded);
    return totals;
  } catch (const std::exception& e) {
    return fail(ErrorClass::communication, "merge job logs", e.what());
  }
}

}  // namespace penstock::engine
