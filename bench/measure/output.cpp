// The line of JSON (docs/reference/measure.md; schema: docs/reference/measure-sample.schema.json).
#include <algorithm>
#include <cmath>
#include <set>

#include "record.hpp"

namespace penstock::measure {
namespace {

Json typed(const Option& o, const std::string& value) {
  if (o.kind == Kind::flag) return value == "true";
  if (o.kind == Kind::size || o.kind == Kind::count || o.kind == Kind::seconds)
    return Json::parse(value);
  return value;
}

Json parameters_of(const Parameters& p) {
  Json j = Json::object();
  for (const auto& [key, value] : p.resolved) {
    std::string name = key;
    std::ranges::replace(name, '_', '-');
    const auto found = std::ranges::find(options(), name, &Option::name);
    j[key] = found == options().end() ? Json(value) : typed(*found, value);
  }
  j["hint"] = Json::object();
  for (const auto& [key, value] : p.hints) j["hint"][key] = value;
  return j;
}

double largest(const std::vector<Record>& records, double Record::*member) {
  double most = 0;
  for (const Record& r : records) most = std::max(most, r.*member);
  return most;
}

double slowest(const std::vector<Record>& records, double Phases::*phase) {
  double most = 0;
  for (const Record& r : records) most = std::max(most, r.phases.*phase);
  return most;
}

Json phases_of(const std::vector<Record>& r) {
  return {{"open_s", slowest(r, &Phases::open_s)},   {"compute_s", slowest(r, &Phases::compute_s)},
          {"write_s", slowest(r, &Phases::write_s)}, {"sync_s", slowest(r, &Phases::sync_s)},
          {"close_s", slowest(r, &Phases::close_s)}, {"drain_s", slowest(r, &Phases::drain_s)}};
}

Json workers_done(const std::vector<Record>& records) {
  double first = records.front().done_s;
  for (const Record& r : records) first = std::min(first, r.done_s);
  return {{"first_s", first}, {"last_s", largest(records, &Record::done_s)}};
}

Json calls_of(const std::vector<Record>& records, bool each) {
  struct Of {
    Call call;
    int worker;
  };
  std::vector<Of> all;
  for (size_t w = 0; w < records.size(); ++w)
    for (const Call& c : records[w].calls) all.push_back({c, int(w)});
  Json j{{"count", all.size()}};
  std::vector<double> seconds;
  for (const Of& o : all) seconds.push_back(o.call.seconds);
  std::ranges::sort(seconds);
  // The smallest value that at least this share of the calls does not exceed.
  const auto quantile = [&](double share) {
    if (seconds.empty()) return Json();
    const auto rank = size_t(std::ceil(share * double(seconds.size())));
    return Json(seconds[std::clamp<size_t>(rank, 1, seconds.size()) - 1]);
  };
  j["median_s"] = quantile(0.5);
  j["p99_s"] = quantile(0.99);
  j["max_s"] = quantile(1);
  if (!each) return j;
  std::ranges::sort(all, {}, [](const Of& o) { return o.call.begin_s; });
  j["each_s"] = Json::array();
  for (const Of& o : all) j["each_s"].push_back({o.call.begin_s, o.call.seconds, o.worker});
  return j;
}

Json engine_of(const std::vector<Record>& records) {
  Json j;
  int64_t bytes = 0, passed = 0;
  std::set<std::string> degraded;
  for (const Record& r : records) {
    if (!r.engine) continue;
    j["method"] = r.engine->method;
    bytes += r.engine->sum.engine_bytes;
    passed += r.engine->sum.passthrough_bytes;
    for (const auto& [why, times] : r.engine->degraded) degraded.insert(why);
  }
  if (j.is_null()) return j;
  j["bytes"] = bytes;
  j["passed_bytes"] = passed;
  j["degraded"] = degraded;
  return j;
}

Json verified(const std::vector<Record>& records) {
  Check all;
  std::string file;
  bool any = false;
  for (const Record& r : records) {
    if (!r.check) continue;
    any = true;
    const Off before = all.first_wrong;
    all.add(*r.check);
    if (all.first_wrong != before) file = r.check_file;
  }
  if (!any) return {};
  Json j{{"bytes", all.bytes}, {"wrong_bytes", all.wrong_bytes}, {"first_wrong", Json()}};
  if (all.wrong_bytes == 0) return j;
  j["first_wrong"] = {{"file", file},
                      {"offset", all.first_wrong},
                      {"worker", all.first_worker < 0 ? Json() : Json(all.first_worker)},
                      {"expected", all.expected < 0 ? Json() : Json(all.expected)},
                      {"found", all.found < 0 ? Json() : Json(all.found)}};
  return j;
}

// MPI's names, whatever route reported the error: the same fault reads the same.
const char* mpi_name(ErrorClass c) {
  switch (c) {
    case ErrorClass::argument:
      return "MPI_ERR_ARG";
    case ErrorClass::unsupported:
      return "MPI_ERR_UNSUPPORTED_OPERATION";
    case ErrorClass::no_such_file:
      return "MPI_ERR_NO_SUCH_FILE";
    case ErrorClass::access:
      return "MPI_ERR_ACCESS";
    case ErrorClass::read_only:
      return "MPI_ERR_READ_ONLY";
    case ErrorClass::file_exists:
      return "MPI_ERR_FILE_EXISTS";
    case ErrorClass::no_space:
      return "MPI_ERR_NO_SPACE";
    case ErrorClass::quota:
      return "MPI_ERR_QUOTA";
    case ErrorClass::no_memory:
      return "MPI_ERR_NO_MEM";
    case ErrorClass::communication:
      return "MPI_ERR_OTHER";
    case ErrorClass::internal:
      return "MPI_ERR_INTERN";
    default:
      return "MPI_ERR_IO";
  }
}

// The worst failure; of equal ones, the lowest worker's that says more than that another failed.
Json error_of(const std::vector<Record>& records) {
  const auto rank = [](const Failure& f) {
    const bool of_another = f.error.detail.find("another ") != std::string::npos;
    return 2 * int(f.error.error_class) + (of_another ? 0 : 1);
  };
  int worker = -1;
  for (size_t w = 0; w < records.size(); ++w)
    if (records[w].failure &&
        (worker < 0 || rank(*records[w].failure) > rank(*records[size_t(worker)].failure)))
      worker = int(w);
  if (worker < 0) return {};
  const Failure& f = *records[size_t(worker)].failure;
  return {{"worker", worker},
          {"where", f.where},
          {"class", mpi_name(f.error.error_class)},
          {"text", f.error.message()}};
}

Json rate(double seconds, int64_t bytes) {
  return {{"seconds", seconds}, {"bytes_per_s", seconds > 0 ? double(bytes) / seconds : 0.0}};
}

Json actual_of(const Parameters& p, const std::vector<Record>& records, int64_t bytes,
               const std::optional<Series>& series) {
  const double seconds = largest(records, &Record::actual_s);
  if (seconds == 0) return {};
  Json j = rate(seconds, bytes);
  if (p.op == Op::read) {
    j["source"] = "read";
    j["why"] = "of input only the actual rate can be seen";
    return j;
  }
  j["source"] = "fsync";
  j["why"] = "fsync of every file had returned";
  if (!series) return j;
  if (series->left_bytes && *series->left_bytes == 0) {
    j["source"] = series->source;
    j["why"] = "fsync of every file had returned, and " + series->source + " saw nothing unwritten";
  } else if (series->left_bytes) {
    j["why"] = "fsync of every file had returned, but " + series->source + " still saw " +
               std::to_string(*series->left_bytes) + " bytes unwritten";
  } else {
    j["why"] = "fsync of every file had returned; " + series->why;
  }
  return j;
}

Json series_of(const std::optional<Series>& series) {
  if (!series) return {};
  Json j{{"bin_s", series->bin_s},  {"application_bytes", series->application_bytes},
         {"actual_bytes", Json()},  {"source", series->source},
         {"why", series->why},      {"readings", series->readings},
         {"busy_s", series->busy_s}};
  if (series->actual_bytes) j["actual_bytes"] = *series->actual_bytes;
  return j;
}

// Of all nodes whose kernel told.
Json cpus_of(const std::vector<Record>& records) {
  CpuTimes sum;
  for (const Record& r : records) {
    if (!r.cpus) continue;
    sum.busy_ticks += r.cpus->busy_ticks;
    sum.total_ticks += r.cpus->total_ticks;
  }
  if (sum.total_ticks <= 0) return {};  // none told, or the clock ran for less than a tick
  return {{"busy_s", seconds_of_ticks(sum.busy_ticks)},
          {"total_s", seconds_of_ticks(sum.total_ticks)}};
}

Json notes_of(const std::vector<Record>& records) {
  std::set<std::string> notes;
  for (const Record& r : records) notes.insert(r.notes.begin(), r.notes.end());
  return notes;
}

}  // namespace

Json line_of(const Program& program, const Parameters& p, const Place& place, int nodes,
             const std::vector<Record>& records, const std::optional<Series>& series,
             const std::string& verify_why) {
  int64_t bytes = 0;
  for (const Record& r : records) bytes += r.bytes;
  Json j;
  j["schema"] = "penstock.measure/1";
  j["program"] = "penstock-measure";
  j["version"] = PENSTOCK_VERSION;
  j["mpi"] = program.mpi.empty() ? Json() : Json(program.mpi);
  j["mpi_flavour"] = program.flavour.empty() ? Json() : Json(program.flavour);
  j["parameters"] = parameters_of(p);
  j["workers"] = records.size();
  j["ranks"] = place.ranks;
  j["threads"] = place.threads;
  j["nodes"] = nodes;
  j["bytes"] = bytes;
  j["application"] = rate(largest(records, &Record::application_s), bytes);
  j["actual"] = actual_of(p, records, bytes, series);
  j["phases"] = phases_of(records);
  j["workers_done"] = workers_done(records);
  j["series"] = series_of(series);
  j["calls"] = calls_of(records, p.each_call);
  j["engine"] = engine_of(records);
  j["cpus"] = cpus_of(records);
  j["overhead"] = {{"per_iteration_s", largest(records, &Record::overhead_s)}};
  j["verified"] = verified(records);
  if (j["verified"].is_null()) j["verified_why"] = verify_why;
  j["notes"] = notes_of(records);
  j["error"] = error_of(records);
  return j;
}

}  // namespace penstock::measure
