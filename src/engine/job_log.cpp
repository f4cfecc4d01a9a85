// Collects the reports of files, and writes them as one JSON file.
#include "engine/job_log.hpp"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <map>

#include "base/clock.hpp"
#include "base/units.hpp"
#include "engine/absolute_path.hpp"
#include "engine/replace_file.hpp"
#include "engine/report_json.hpp"

namespace penstock::engine {
namespace {

using nlohmann::json;

// ---- the name

bool harmless(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

// A word that is safe within a file name: its last component only, and not too long. Its end stays:
// that tells a job's ranks apart, and jobs by their start.
std::string safe_word(std::string word, const char* fallback) {
  constexpr size_t kLongest = 64;
  word.erase(0, word.rfind('/') + 1);
  word.erase(0, word.size() - std::min(word.size(), kLongest));
  std::ranges::replace_if(
      word, [](char c) { return !harmless(c); }, '_');
  return word.empty() ? fallback : word;
}

// ---- the document

double unix_now_s() {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

json head(const JobFacts& f, bool finished) {
  return {{"schema_version", kLogSchemaVersion},
          {"state", finished ? "finished" : "running"},
          {"penstock_version", f.penstock_version},
          {"job_id", f.job_id},
          {"program", f.program},
          {"mpi_library", f.mpi_library},
          {"build", f.build},
          {"host", f.host},
          {"ranks", f.ranks},
          {"written_by_rank", f.rank},
          {"start_unix_s", f.start_unix_s},
          {"written_unix_s", unix_now_s()},
          {"elapsed_s", now_s() - f.start_s}};
}

// Paths are bytes, JSON is UTF-8: what is not becomes U+FFFD instead of an exception.
std::string dump(const json& j, int indent) {
  return j.dump(indent, ' ', false, json::error_handler_t::replace);
}

// As it comes back from another process.
std::string as_utf8(const std::string& path) { return json::parse(dump(path, -1)); }

json files_of(const std::vector<FileReport>& reports) {
  json files = json::array();
  for (const FileReport& r : reports) files.push_back(to_json(r));
  return files;
}

std::string document(const JobFacts& facts, bool finished, const std::vector<FileReport>& reports,
                     const JobTotals& totals) {
  json log = head(facts, finished);
  log["totals"] = to_json(totals);
  log["files"] = files_of(reports);
  return dump(log, 1) + "\n";
}

// ---- the line

std::string count(int64_t n, const char* what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

// "degraded 3 times (no cachestat)": a few reasons, the log has all.
std::string degraded_clause(const std::map<std::string, int64_t>& degraded) {
  constexpr size_t kNamed = 2;
  if (degraded.empty()) return {};
  int64_t times = 0;
  for (const auto& entry : degraded) times += entry.second;
  std::string text = ", degraded " + count(times, "time") + " (";
  size_t i = 0;
  for (const auto& [why, n] : degraded) {
    if (i == kNamed) {
      text += "; ...";
      break;
    }
    text += (i++ == 0 ? "" : "; ") + why;
  }
  return text + ")";
}

std::string verify_clause(const JobTotals& t) {
  std::string text;
  if (t.verified_bytes > 0) text += ", " + human_size(t.verified_bytes) + " verified";
  if (t.unverified_bytes > 0) text += ", " + human_size(t.unverified_bytes) + " not verified";
  if (t.mismatched_bytes > 0) text += ", " + human_size(t.mismatched_bytes) + " DIFFER";
  return text;
}

// Files that went wrong find room where others do not.
constexpr size_t kMostListed = 1000, kErrorsMore = 2;
constexpr size_t kMostListedWithErrors = kErrorsMore * kMostListed;

Result<std::vector<FileReport>> reports_from_json(const json& files) {
  if (!files.is_array())
    return fail(ErrorClass::communication, "merge job logs", "not a list of file reports");
  std::vector<FileReport> reports;
  for (const json& file : files) {
    Result<FileReport> report = report_from_json(file);
    if (!report) return tl::unexpected(std::move(report).error());
    reports.push_back(std::move(*report));
  }
  return reports;
}

}  // namespace

JobLog::JobLog(const std::string& dir, JobFacts facts, Listed listed)
    : dir_(absolute_path(dir)),
      name_("penstock-" + safe_word(facts.program, "program") + "-" +
            safe_word(facts.job_id, "job") + ".json"),
      path_(dir_ + (dir_.back() == '/' ? "" : "/") + name_),
      facts_(std::move(facts)),
      listed_(listed) {}

// What is open will be replaced when it is closed late: it keeps its report.
bool JobLog::has_room_for(const FileReport& report) const {
  if (!report.closed) return true;
  if (listed_ == Listed::none) return false;
  return reports_.size() < (went_wrong(report) ? kMostListedWithErrors : kMostListed);
}

void JobLog::add(FileReport report) {
  report.path = as_utf8(report.path);
  if (has_room_for(report)) {
    reports_.push_back(std::move(report));
  } else {
    unlisted_.add(report);
    ++unlisted_.files_not_listed;
  }
}

// Each of its ranks said something of the file, and of another of this name that is open too.
void JobLog::add_closed_late(FileReport report) {
  report.path = as_utf8(report.path);
  int left = report.ranks;
  std::erase_if(reports_, [&](const FileReport& r) {
    return !r.closed && r.path == report.path && left-- > 0;
  });
  add(std::move(report));
}

void JobLog::clear() {
  reports_.clear();
  unlisted_ = {};
}

int64_t JobLog::closed_files() const noexcept {
  return std::ranges::count_if(reports_, &FileReport::closed) + unlisted_.files_not_listed;
}

int JobLog::shares_of(int64_t processes, int64_t files) noexcept {
  return files <= int64_t(kMostListed) ? 1 : int(processes);
}

JobLog::Share JobLog::share(int processes) const {
  const size_t files = std::max<size_t>(1, kMostListed / size_t(processes));
  Share mine{{}, unlisted_};
  for (const FileReport& report : reports_) {
    const size_t most = went_wrong(report) ? kErrorsMore * files : files;
    if (!report.closed || mine.listed.size() < most) {
      mine.listed.push_back(report);
    } else {
      mine.unlisted.add(report);
      ++mine.unlisted.files_not_listed;
    }
  }
  return mine;
}

std::string JobLog::encode_reports(int processes) const {
  const Share mine = share(processes);
  return dump({{"files", files_of(mine.listed)}, {"unlisted", to_json(mine.unlisted)}}, -1);
}

void JobLog::keep_share(int processes) {
  Share mine = share(processes);
  reports_ = std::move(mine.listed);
  unlisted_ = std::move(mine.unlisted);
}

Result<void> JobLog::merge(const std::string& encoded) {
  constexpr bool kThrow = false;
  const json all = json::parse(encoded, nullptr, kThrow);
  if (!all.is_object() || !all.contains("files") || !all.contains("unlisted"))
    return fail(ErrorClass::communication, "merge job logs", "not what a process has encoded");
  auto files = reports_from_json(all["files"]);
  if (!files) return tl::unexpected(std::move(files).error());
  const auto unlisted = totals_from_json(all["unlisted"]);
  if (!unlisted) return tl::unexpected(unlisted.error());
  for (FileReport& report : *files) add(std::move(report));
  unlisted_.add(*unlisted);
  return {};
}

JobTotals JobLog::totals_with(const std::vector<FileReport>& open_files) const {
  JobTotals totals = unlisted_;
  for (const FileReport& r : reports_) totals.add(r);
  for (const FileReport& r : open_files) totals.add(r);
  return totals;
}

Result<void> JobLog::make_directory() {
  if (made_) return {};
  auto done = make_directories(dir_);
  made_ = done.has_value();
  return done;
}

Result<void> JobLog::write(bool finished, const std::vector<FileReport>& open_files) {
  const JobTotals totals = totals_with(open_files);
  std::vector<FileReport> all = reports_;
  all.insert(all.end(), open_files.begin(), open_files.end());
  auto done = make_directory().and_then(
      [&] { return replace_file(dir_, name_, document(facts_, finished, all, totals)); });
  written_ = done.has_value();
  return done;
}

std::string JobLog::summary_line() const {
  const JobTotals t = totals_with({});
  return "penstock: " + human_size(t.engine_bytes) + " by engine, " +
         human_size(t.passthrough_bytes) + " passed through, " + count(t.errors, "error") +
         verify_clause(t) + degraded_clause(t.degraded) +
         (written_ ? ", log " + path_ : ", no log");
}

}  // namespace penstock::engine
