// The log of a job: one JSON file (docs/reference/job-log.schema.json), written by rename so that
// it is whole whenever it is read, mode 0600, never through a link. `state` is "running" until the
// end, so a killed job leaves a readable log that says so.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "engine/job_totals.hpp"
#include "engine/statistics.hpp"

namespace penstock::engine {

inline constexpr int kLogSchemaVersion = 1;

struct JobFacts {
  std::string job_id, program, mpi_library, penstock_version, host;
  std::string build;  // the flavour of this engine: mpich, openmpi, abi
  int ranks = 0, rank = 0;
  double start_unix_s = 0;
  double start_s = 0;  // the same moment by now_s(), which nobody sets
};

// Which files that were closed keep a report of their own. The totals have all.
enum class Listed : uint8_t {
  some,  // the first 1000, and of later ones the first 1000 that went wrong: logs stay readable
  none,  // where nobody writes the log
};

class JobLog {
 public:
  // Chooses the name penstock-<program>-<job_id>.json in `dir` (empty: the working directory of
  // now); writes nothing yet. Characters that file names should not have become '_'.
  JobLog(const std::string& dir, JobFacts facts, Listed listed = Listed::some);

  void add(FileReport report);  // a file that was closed, or what a rank says of one left open
  // Of all its ranks: in place of what they said of it when it was left open.
  void add_closed_late(FileReport report);
  void clear();  // another process has what was added
  // Of this process, to be merged elsewhere with those of `processes` together: its share of the
  // files that one log lists, and the sum of the others.
  std::string encode_reports(int processes = 1) const;
  // Of this process so far. Those that are left open need no room, and every rank tells its part.
  int64_t closed_files() const noexcept;
  // What to say of `processes` that have `files` in all: 1 where one log lists them all.
  static int shares_of(int64_t processes, int64_t files) noexcept;
  // Before others are merged into this one, of `processes` together: what it would send of its own.
  void keep_share(int processes);
  Result<void> merge(const std::string& encoded);  // from encode_reports() of another process
  // `open_files` are snapshots. Atomic: the old log or the new one, never half. Missing directories
  // are made once: where they are gone later, as in another root, that is an error.
  Result<void> write(bool finished, const std::vector<FileReport>& open_files);
  // "penstock: 12.4 GiB by engine, 0 B passed through, 0 errors, log PATH". What degraded and what
  // did not verify is named before the log. "no log" when none was written.
  std::string summary_line() const;
  const std::string& path() const noexcept { return path_; }
  bool empty() const noexcept { return reports_.empty() && unlisted_.files_not_listed == 0; }

 private:
  struct Share {
    std::vector<FileReport> listed;
    JobTotals unlisted;
  };
  Share share(int processes) const;
  bool has_room_for(const FileReport& report) const;
  JobTotals totals_with(const std::vector<FileReport>& open_files) const;
  Result<void> make_directory();

  std::string dir_, name_, path_;
  bool made_ = false;  // the directory
  JobFacts facts_;
  Listed listed_;
  std::vector<FileReport> reports_;
  JobTotals unlisted_;    // of what was added and is not in reports_
  bool written_ = false;  // the last time; what is left of an earlier one says "running"
};

}  // namespace penstock::engine
