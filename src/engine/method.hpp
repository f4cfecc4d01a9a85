// A write method: algorithm + exchange + mechanism + sync + return, spelled
// alike in configuration, command line, log and report, for example
//   two_phase(writers=4, cycle=16MiB) + messages + uring(direct, depth=8) + none + written
// Trailing choices may be left out, and "auto" as the algorithm lets the engine choose per call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "exec/exchange.hpp"
#include "io/mechanism.hpp"
#include "io/sync_policy.hpp"
#include "plan/algorithm.hpp"

namespace penstock::engine {

// write_behind(stages=2, page=1MiB, limit=64MiB, seconds=5): the short name of cyclic + staged, fed
// by independent calls. What is 0 is left to the settings write_behind_*.
struct WriteBehindOptions {
  int stages = 2;  // 1: bytes are not gathered before they are sent to another node
  int64_t page_bytes = 0, limit_bytes = 0;
  int seconds = 0;

  friend bool operator==(const WriteBehindOptions&, const WriteBehindOptions&) = default;
};

struct Method {
  const plan::Algorithm* algorithm = nullptr;  // nullptr: auto, a rule per call (select.hpp)
  plan::Parameters parameters;
  // Never nullptr after parsing. Of algorithms that exchange; the others do with `none`.
  const exec::Exchange* exchange = nullptr;
  exec::Pack pack = exec::Pack::copy;         // of exchanges that take it
  const io::Mechanism* mechanism = nullptr;   // never nullptr after parsing
  io::Direct direct = io::Direct::never;      // of mechanisms that take it
  int depth = 0;                              // writes under way; 0: the mechanism's own default
  bool registered = false;                    // the kernel keeps hold of the buffers, where it can
  int64_t window_bytes = io::kWindowOfCycle;  // of mechanisms that map
  const io::SyncPolicy* sync = nullptr;       // never nullptr after parsing
  int64_t sync_bytes = 0;                     // > 0 when the policy takes them, else 0
  // How much non-blocking and split writes may stage in a process; 0: nothing, they return with
  // their bytes in the file. nullopt: `written`, which leaves the bound to the engine. Blocking
  // writes return with their bytes in the file, whatever this is.
  std::optional<int64_t> staged_bytes = std::nullopt;
  // Where the method was named so; the algorithm is cyclic then.
  std::optional<WriteBehindOptions> write_behind = std::nullopt;
};

// Illegal combinations and unknown names are argument errors that name the value, the nearest
// valid one and the reason. An option that some other choice of the family takes is `unsupported`.
Result<Method> parse_method(std::string_view text);
// An exchange that was named with what sends nothing is not spelled again, and so is none: where
// the file system lets only an algorithm be that exchanges, all ranks have the same.
Method as_spelled(Method m);
Method default_method();  // "auto + shm + pwrite(direct=cold) + anticipate=1MiB + written"
// Canonical and complete; parse_method reads it back.
std::string to_string(const Method& method);

// The rules between choices: what parse_method checks last, and whoever changes a method
// afterwards.
Result<void> check(const Method& method);
// The limits of the parameters, wherever they are given.
inline constexpr int64_t kMaxWriters = int64_t{1} << 20;
inline constexpr int64_t kMaxDepth = 1024;
Result<int> check_writers(int64_t writers);
Result<int> check_writer(int64_t rank);
Result<int> check_at_once(int64_t ranks);
Result<int64_t> check_cycle(int64_t cycle_bytes);
Result<int64_t> check_stripe(int64_t stripe_bytes);
Result<int64_t> check_sync_bytes(int64_t sync_bytes);
Result<int> check_depth(int64_t depth);
Result<int64_t> check_staged(int64_t limit_bytes);
// Of writing behind; 0 leaves it to the engine.
Result<int64_t> check_behind_page(int64_t page_bytes);
Result<int64_t> check_behind_limit(int64_t limit_bytes);
Result<int64_t> check_behind_subbuffer(int64_t load_bytes);
Result<int> check_behind_seconds(int64_t seconds);

}  // namespace penstock::engine
