// What a file's calls did, always on. Per rank a flat block of counters; at
// close they are summed over ranks by reduction, so that cost does not grow with ranks.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "comm/comm.hpp"

namespace penstock::engine {

enum class CallKind : uint8_t {
  write,
  write_all,
  write_at,
  write_at_all,
  read,
  other,
  sync,
  count
};
const char* to_string(CallKind k) noexcept;

inline constexpr int kSizeBuckets = 16;  // bucket i: up to 2^(4+2i) bytes; the last has no bound
int size_bucket(int64_t bytes) noexcept;

// Every member is an int64 that is summed over ranks (times in nanoseconds).
struct Counters {
  int64_t engine_bytes = 0;  // through the engine, of calls that succeeded or the part that did
  int64_t passthrough_bytes = 0;  // written by the MPI library itself, as far as its counts say
  int64_t read_bytes = 0;         // by the MPI library itself, as far as its counts say
  int64_t engine_read_bytes = 0;  // into the program's memory, by the engine
  int64_t errors = 0;
  int64_t passthrough_calls = 0;  // writes not served
  int64_t plan_ns = 0, pack_ns = 0, exchange_ns = 0, write_ns = 0, sync_ns = 0, close_ns = 0;
  int64_t policy_sync_ns = 0;  // between writes, because the method's sync says so
  int64_t call_ns = 0;         // inside write calls, until they return
  int64_t contiguous_calls = 0, strided_calls = 0, irregular_calls = 0;  // file side
  int64_t messages = 0, message_bytes = 0, file_writes = 0, cycles = 0, descriptions = 0;
  int64_t shared_bytes = 0;  // copied straight into another rank's page, in no message
  int64_t cold_bytes = 0;    // past the page cache since memory was cold, of direct=cold
  int64_t policy_syncs = 0;  // that succeeded
  // Taken by calls that may return before the bytes are in the file; those that are, are in
  // engine_bytes too.
  int64_t staged_bytes = 0;
  // Of the engine's reads, collective and of views that the library was not told of: calls, the
  // time inside them and inside pread, reads of the file and what they brought (holes that were
  // read over count), and messages between ranks.
  int64_t read_calls = 0, read_call_ns = 0, read_ns = 0;
  int64_t file_reads = 0, file_read_bytes = 0, read_messages = 0, read_message_bytes = 0;
  std::array<int64_t, size_t(CallKind::count)> calls{};
  std::array<int64_t, kSizeBuckets> sizes{};  // write calls by bytes of this rank
};

struct FileReport {
  std::string path;
  int ranks = 0;
  Counters sum;
  double open_to_close_s = 0;      // slowest rank
  double application_rate = 0;     // bytes/s: bytes over the slowest rank's time inside write calls
  double actual_rate = 0;          // bytes/s until the device has them; 0 when not known
  std::string actual_rate_source;  // "fsync", "cachestat" or why it is not known
  std::string method;              // as configured
  std::string progress;            // of independent writes between nodes; empty: there is none
  std::map<std::string, int64_t> algorithms;  // ran: calls
  std::map<std::string, int64_t> degraded;    // reason: how often
  int64_t verified_bytes = 0, unverified_bytes = 0, mismatched_bytes = 0;
  std::string first_error;  // empty when none
  std::string file_system;
  bool closed = false;
};

inline bool went_wrong(const FileReport& r) noexcept {
  return r.sum.errors > 0 || r.mismatched_bytes > 0;
}

}  // namespace penstock::engine
