// A write method: algorithm + exchange + mechanism + sync + return, spelled
// alike in configuration, command line, log and report, for example
//   two_phase(writers=4, cycle=16MiB) + messages + pwrite + none + written
// Trailing choices may be left out, and "auto" as the algorithm lets the engine choose per call.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "io/mechanism.hpp"
#include "io/sync_policy.hpp"
#include "plan/algorithm.hpp"

namespace penstock::engine {

// The exchange is not kept: algorithms that exchange use `messages`, the others `none`. Nor is the
// return: it is always `written`.
struct Method {
  const plan::Algorithm* algorithm = nullptr;  // nullptr: auto, a rule per call (select.hpp)
  plan::Parameters parameters;
  const io::Mechanism* mechanism = nullptr;  // never nullptr after parsing
  const io::SyncPolicy* sync = nullptr;      // never nullptr after parsing
  int64_t sync_bytes = 0;                    // > 0 when the policy takes them, else 0
};

// Illegal combinations and unknown names are argument errors that name the value, the nearest
// valid one and the reason. A choice that Penstock knows and this version lacks is `unsupported`.
Result<Method> parse_method(std::string_view text);
Method default_method();  // "auto + messages + pwrite + none + written"
// Canonical and complete; parse_method reads it back.
std::string to_string(const Method& method);

// A word of the design that this version lacks: "exchange", "shm".
struct PlannedWord {
  std::string_view family, name;
};
std::vector<PlannedWord> planned_words();

// The rules between choices: what parse_method checks last, and whoever changes a method
// afterwards.
Result<void> check(const Method& method);
// The limits of the parameters, wherever they are given.
inline constexpr int64_t kMaxWriters = int64_t{1} << 20;
Result<int> check_writers(int64_t writers);
Result<int64_t> check_cycle(int64_t cycle_bytes);
Result<int64_t> check_sync_bytes(int64_t sync_bytes);

}  // namespace penstock::engine
