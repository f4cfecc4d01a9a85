// Records travel as JSON, but calls, which may be many, as they lie in memory.
#include "record.hpp"

#include <cstring>
#include <span>

namespace penstock::measure {
namespace {

// NaN and infinities do not exist in JSON, and none of these can be one.
Json header_of(const Record& r) {
  Json j;
  if (r.failure) {
    const Error& e = r.failure->error;
    j["failure"] = {{"where", r.failure->where},
                    {"class", int(e.error_class)},
                    {"errno", e.sys_errno},
                    {"operation", e.operation},
                    {"detail", e.detail}};
  }
  const Phases& p = r.phases;
  j["phases"] = {p.open_s, p.compute_s, p.write_s, p.sync_s, p.close_s, p.drain_s};
  j["times"] = {r.application_s, r.done_s, r.overhead_s, r.actual_s};
  j["bytes"] = r.bytes;
  j["calls"] = r.calls.size();
  if (r.cpus) j["cpus"] = {r.cpus->busy_ticks, r.cpus->total_ticks};
  if (r.engine)
    j["engine"] = {{"method", r.engine->method},
                   {"bytes", r.engine->sum.engine_bytes},
                   {"passed", r.engine->sum.passthrough_bytes},
                   {"degraded", r.engine->degraded}};
  if (r.check)
    j["check"] = {r.check->bytes,        r.check->wrong_bytes, r.check->first_wrong,
                  r.check->first_worker, r.check->expected,    r.check->found};
  j["check_file"] = r.check_file;
  j["notes"] = r.notes;
  return j;
}

Record record_of(const Json& j) {
  Record r;
  if (j.contains("failure")) {
    const Json& f = j["failure"];
    r.failure = Failure{f["where"], Error{ErrorClass(f["class"].get<int>()), f["errno"],
                                          f["operation"], f["detail"]}};
  }
  const Json& p = j["phases"];
  r.phases = {p[0], p[1], p[2], p[3], p[4], p[5]};
  const Json& t = j["times"];
  r.application_s = t[0];
  r.done_s = t[1];
  r.overhead_s = t[2];
  r.actual_s = t[3];
  r.bytes = j["bytes"];
  r.calls.resize(j["calls"].get<size_t>());
  if (j.contains("cpus")) r.cpus = CpuTimes{j["cpus"][0], j["cpus"][1]};
  if (j.contains("engine")) {
    r.engine.emplace();
    r.engine->method = j["engine"]["method"];
    r.engine->sum.engine_bytes = j["engine"]["bytes"];
    r.engine->sum.passthrough_bytes = j["engine"]["passed"];
    r.engine->degraded = j["engine"]["degraded"].get<std::map<std::string, int64_t>>();
  }
  if (j.contains("check")) {
    const Json& c = j["check"];
    r.check = Check{c[0], c[1], c[2], c[3], c[4], c[5]};
  }
  r.check_file = j["check_file"];
  r.notes = j["notes"].get<std::vector<std::string>>();
  return r;
}

}  // namespace

Result<std::vector<Record>> gather_records(comm::Comm& team, const Record& mine) {
  // Whatever a path or a message of the system holds, it travels; invalid UTF-8 is replaced.
  const std::string text =
      header_of(mine).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  auto headers = team.gather(std::as_bytes(std::span(text)), 0);
  if (!headers) return tl::unexpected(headers.error());
  auto calls = team.gather(std::as_bytes(std::span(mine.calls)), 0);
  if (!calls) return tl::unexpected(calls.error());
  std::vector<Record> records;
  if (team.rank() != 0) return records;
  const std::string all(reinterpret_cast<const char*>(headers->data()), headers->size());
  const std::byte* call = calls->data();
  for (size_t begin = 0; begin < all.size();) {
    const size_t end = all.find('\n', begin);
    records.push_back(record_of(Json::parse(all.substr(begin, end - begin))));
    auto& into = records.back().calls;
    if (!into.empty()) std::memcpy(into.data(), call, into.size() * sizeof(Call));
    call += into.size() * sizeof(Call);
    begin = end + 1;
  }
  return records;
}

}  // namespace penstock::measure
