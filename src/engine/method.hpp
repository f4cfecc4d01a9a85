// A write method: algorithm + exchange + mechanism + sync + return, spelled
// alike in configuration, command line, log and report, for example
//   two_phase(writers=4, cycle=16MiB) + messages + pwrite + none + written
// Trailing choices may be left out, and "auto" as the algorithm lets the engine choose per call.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "io/mechanism.hpp"
#include "io/sync_policy.hpp"
#include "plan/algorithm.hpp"

namespace penstock::engine {

struct Method {
  const plan::Algorithm* algorithm = nullptr;  // nullptr: auto, a rule per call (select.hpp)
  plan::Parameters parameters;
  const io::Mechanism* mechanism = nullptr;  // never nullptr after parsing
  const io::SyncPolicy* sync = nullptr;      // never nullptr after parsing
};

// Illegal combinations and unknown names are argument errors that name the value, the nearest
// valid one and the reason.
Result<Method> parse_method(std::string_view text);
Method default_method();  // "auto + messages + pwrite + none + written"
// Canonical and complete; parse_method reads it back.
std::string to_string(const Method& method);

}  // namespace penstock::engine
