// From one rank's notes to the report of a file: sums and maxima by reduction,
// texts gathered only where there are any.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "comm/comm.hpp"
#include "engine/statistics.hpp"
#include "engine/verify.hpp"
#include "exec/pipeline.hpp"
#include "exec/read_pipeline.hpp"
#include "io/probe.hpp"

namespace penstock::engine {

struct OpenInfo;

// What one rank remembers of a file.
struct FileNotes {
  Counters counters;
  std::vector<int64_t> algorithm_calls;  // by index in plan::algorithms()
  std::map<std::string, int64_t> degraded;
  std::string first_error;
  std::string progress;  // of independent writes between nodes
  Verification verification;
  std::optional<io::Unwritten> unwritten;  // at close, where it was asked for: on rank 0
  double opened_s = 0, first_write_s = 0, last_write_s = 0, synced_s = 0;

  void wrote(double begin_s, double end_s);
  void ran(const plan::Algorithm* algorithm, int64_t calls = 1);
  void take(const exec::PhaseTimes& times, const exec::Traffic& traffic);  // the pipeline's totals
  void take(const exec::ReadSpent& spent);                                 // of reads
};

// A report with what is known before any call: path, method, file system.
FileReport describe(const OpenInfo& info, const io::FileSystem& fs);
// This rank alone.
FileReport local_report(const FileNotes& notes, FileReport base);
// Collective; complete on rank 0.
FileReport merge(comm::Comm& comm, const FileNotes& notes, FileReport base);

}  // namespace penstock::engine
