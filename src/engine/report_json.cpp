// One table of counters serves both directions, so that a counter is never written and not read.
#include "engine/report_json.hpp"

#include <array>
#include <cmath>

namespace penstock::engine {
namespace {

using nlohmann::json;

struct CounterName {
  const char* group;  // "": at the top of the file's entry
  const char* name;
  int64_t Counters::*member;
};

constexpr std::array<CounterName, 23> kCounts = {{
    {"", "engine_bytes", &Counters::engine_bytes},
    {"", "passthrough_bytes", &Counters::passthrough_bytes},
    {"", "read_bytes", &Counters::read_bytes},
    {"", "engine_read_bytes", &Counters::engine_read_bytes},
    {"", "errors", &Counters::errors},
    {"", "passthrough_calls", &Counters::passthrough_calls},
    {"pattern", "contiguous_calls", &Counters::contiguous_calls},
    {"pattern", "strided_calls", &Counters::strided_calls},
    {"pattern", "irregular_calls", &Counters::irregular_calls},
    {"traffic", "messages", &Counters::messages},
    {"traffic", "message_bytes", &Counters::message_bytes},
    {"traffic", "shared_bytes", &Counters::shared_bytes},
    {"traffic", "file_writes", &Counters::file_writes},
    {"traffic", "cold_bytes", &Counters::cold_bytes},
    {"traffic", "cycles", &Counters::cycles},
    {"traffic", "descriptions", &Counters::descriptions},
    {"traffic", "policy_syncs", &Counters::policy_syncs},
    {"traffic", "staged_bytes", &Counters::staged_bytes},
    {"reads", "calls", &Counters::read_calls},
    {"reads", "file_reads", &Counters::file_reads},
    {"reads", "file_bytes", &Counters::file_read_bytes},
    {"reads", "messages", &Counters::read_messages},
    {"reads", "message_bytes", &Counters::read_message_bytes},
}};

// Nanoseconds here, seconds in the file.
constexpr std::array<CounterName, 10> kTimes = {{
    {"times_s", "plan", &Counters::plan_ns},
    {"times_s", "pack", &Counters::pack_ns},
    {"times_s", "exchange", &Counters::exchange_ns},
    {"times_s", "write", &Counters::write_ns},
    {"times_s", "sync", &Counters::sync_ns},
    {"times_s", "policy_sync", &Counters::policy_sync_ns},
    {"times_s", "close", &Counters::close_ns},
    {"times_s", "write_calls", &Counters::call_ns},
    {"times_s", "read", &Counters::read_ns},
    {"times_s", "read_calls", &Counters::read_call_ns},
}};

template <class Json>
Json& place_of(Json& file, const CounterName& n) {
  return *n.group == '\0' ? file : file[n.group];
}

const json& member_of(const json& file, const CounterName& n) {
  return (*n.group == '\0' ? file : file.at(n.group)).at(n.name);
}

// A rate that is not known, or was divided by nothing, is null: JSON has no infinity.
json rate(double bytes_per_s) {
  if (std::isfinite(bytes_per_s) && bytes_per_s > 0) return bytes_per_s;
  return nullptr;
}

double read_rate(const json& j) { return j.is_null() ? 0 : j.get<double>(); }

json size_histogram(const Counters& c) {
  json buckets = json::array();
  for (int i = 0; i < kSizeBuckets; ++i) {
    const bool bounded = i + 1 < kSizeBuckets;
    const json limit = bounded ? json(int64_t{1} << (4 + 2 * i)) : json(nullptr);
    buckets.push_back({{"up_to_bytes", limit}, {"calls", c.sizes[size_t(i)]}});
  }
  return buckets;
}

json calls_by_kind(const Counters& c) {
  json calls = json::object();
  for (size_t k = 0; k < c.calls.size(); ++k) calls[to_string(CallKind(k))] = c.calls[k];
  return calls;
}

void write_counters(const Counters& c, json& file) {
  for (const CounterName& n : kCounts) place_of(file, n)[n.name] = c.*n.member;
  for (const CounterName& n : kTimes) place_of(file, n)[n.name] = 1e-9 * double(c.*n.member);
  file["calls"] = calls_by_kind(c);
  file["sizes"] = size_histogram(c);
}

Counters read_counters(const json& file) {
  Counters c;
  for (const CounterName& n : kCounts) c.*n.member = member_of(file, n).get<int64_t>();
  for (const CounterName& n : kTimes)
    c.*n.member = int64_t(std::llround(1e9 * member_of(file, n).get<double>()));
  for (size_t k = 0; k < c.calls.size(); ++k)
    c.calls[k] = file.at("calls").at(to_string(CallKind(k))).get<int64_t>();
  for (size_t i = 0; i < c.sizes.size(); ++i)
    c.sizes[i] = file.at("sizes").at(i).at("calls").get<int64_t>();
  return c;
}

FileReport read_report(const json& file) {
  FileReport r;
  r.sum = read_counters(file);
  file.at("path").get_to(r.path);
  file.at("ranks").get_to(r.ranks);
  file.at("closed").get_to(r.closed);
  file.at("file_system").get_to(r.file_system);
  file.at("method").get_to(r.method);
  if (const json& p = file.at("write_behind_progress"); !p.is_null()) p.get_to(r.progress);
  file.at("algorithms").get_to(r.algorithms);
  file.at("degraded").get_to(r.degraded);
  if (const json& e = file.at("first_error"); !e.is_null()) e.get_to(r.first_error);
  file.at("open_to_close_s").get_to(r.open_to_close_s);
  r.application_rate = read_rate(file.at("application_rate_bytes_per_s"));
  r.actual_rate = read_rate(file.at("actual_rate_bytes_per_s"));
  file.at("actual_rate_source").get_to(r.actual_rate_source);
  const json& verify = file.at("verify");
  verify.at("verified_bytes").get_to(r.verified_bytes);
  verify.at("unverified_bytes").get_to(r.unverified_bytes);
  verify.at("mismatched_bytes").get_to(r.mismatched_bytes);
  return r;
}

}  // namespace

json to_json(const FileReport& r) {
  json file = {
      {"path", r.path},
      {"ranks", r.ranks},
      {"closed", r.closed},
      {"file_system", r.file_system},
      {"method", r.method},
      {"write_behind_progress", r.progress.empty() ? json(nullptr) : json(r.progress)},
      {"algorithms", json(r.algorithms)},
      {"degraded", json(r.degraded)},
      {"first_error", r.first_error.empty() ? json(nullptr) : json(r.first_error)},
      {"open_to_close_s", std::isfinite(r.open_to_close_s) ? r.open_to_close_s : 0},
      {"application_rate_bytes_per_s", rate(r.application_rate)},
      {"actual_rate_bytes_per_s", rate(r.actual_rate)},
      {"actual_rate_source", r.actual_rate_source},
      {"verify",
       {{"verified_bytes", r.verified_bytes},
        {"unverified_bytes", r.unverified_bytes},
        {"mismatched_bytes", r.mismatched_bytes}}},
  };
  write_counters(r.sum, file);
  return file;
}

Result<FileReport> report_from_json(const json& file) {
  try {
    return read_report(file);
  } catch (const std::exception& e) {
    return fail(ErrorClass::communication, "merge job logs", e.what());
  }
}

}  // namespace penstock::engine
