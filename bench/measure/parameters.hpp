// The options of the measuring program, from one table: command line, --help, --describe and the
// JSON line read it. docs/reference/measure.md explains each.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "engine/method.hpp"
#include "memory.hpp"
#include "pattern.hpp"
#include "route.hpp"

namespace penstock::measure {

enum class RouteKind : uint8_t { engine, mpi, posix };
enum class End : uint8_t { sync, close };
enum class Regime : uint8_t { warm, cold, dropped, asis };
enum class PageReports : uint8_t { asis, wait };
enum class Fill : uint8_t { once, each };
enum class Barrier : uint8_t { each, start };
enum class Verify : uint8_t { all, none };

enum class Kind : uint8_t { text, size, count, seconds, choice, flag, list };

struct Option {
  std::string_view name;  // "sync-each"
  std::string_view ior;   // IOR's letter where it means the same; empty
  Kind kind;
  std::string_view fallback;  // the default, as it is typed; empty: none
  std::string_view unit;      // "bytes", "s"; empty
  std::string_view choices;   // "write|read"; empty
  std::string_view help;
};
std::span<const Option> options();

// What kind of program reads them: without MPI there is no route mpi, and threads default to 2.
enum class Workers : uint8_t { mpi, threads };

struct Parameters {
  std::string file;
  RouteKind route = RouteKind::engine;
  std::string strategy;   // "S1A"; empty when a method was given
  engine::Method method;  // route engine
  Op op = Op::write;
  Files files = Files::shared;
  PatternChoice pattern;
  Access access = Access::collective;
  int threads = 1;
  int64_t iterations = 0, bufsize_bytes = 0, syncsize_bytes = 0, winsize_bytes = 0;
  bool dedicated = false;     // a strategy with a worker that only writes
  bool policy_syncs = false;  // the method syncs every syncsize bytes, not the loop
  double compute_s = 0;
  MemoryShape memory;
  End end = End::sync;
  bool sync_each = false;
  Regime regime = Regime::warm;
  int64_t warm_memory_bytes = 0;  // of a node
  PageReports page_reports = PageReports::asis;
  int64_t warm_disk_bytes = 0;
  Verify verify = Verify::all;
  std::vector<std::pair<std::string, std::string>> hints;
  double bin_s = 0;
  double patience_s = 0;  // 0: for ever
  bool each_call = false;
  uint64_t seed = 1;
  Fill fill = Fill::once;
  Barrier barrier = Barrier::each;
  // By option name, as they are in effect: for the JSON line. Sizes and seconds are numbers.
  std::vector<std::pair<std::string, std::string>> resolved;
};

// What a command line asks for.
struct Request {
  enum class Kind : uint8_t { measure, print, wrong } kind = Kind::wrong;
  Parameters parameters;
  std::string text;  // to print on stdout, or what is wrong, for stderr
};

// Never exits and prints nothing.
Request read_command_line(const std::string& program, Workers workers, int argc,
                          const char* const* argv);

// What --list prints: JSON.
std::string list_json(Workers workers);

}  // namespace penstock::measure
