// Configuration of a run: a TOML file (PENSTOCK_CONFIG), then PENSTOCK_*
// variables, then MPI_Info hints penstock_*; the later wins. Unknown keys and values are
// errors that name the nearest valid one.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "engine/method.hpp"
#include "engine/nearest.hpp"

namespace penstock::engine {

enum class Mode : uint8_t {
  serve,    // take over writes
  observe,  // take over nothing; time the program's own MPI-IO
  off,      // nothing at all: a true no-op
};

struct Config {
  Mode mode = Mode::serve;
  Method method = default_method();
  bool require = false;    // stop with a message wherever Penstock would pass through
  bool verify = false;     // read back and compare checksums at close
  bool quiet = false;      // no line on stderr at the end
  std::string log_dir;     // empty: the working directory of the job
  bool log = true;         // write the job log
  bool all_ranks = false;  // every rank of the job is preloaded (set by `penstock run`)
};

// One setting as text: what a variable or a hint gives. Keys: method ("off" and "observe" too),
// writers, cycle, require, verify, quiet, log, log_dir, all_ranks. A method replaces the earlier
// one with all its options. Changes `config` only on success; callers that are done changing it
// call check(config.method).
Result<void> apply_setting(std::string_view key, std::string_view value, Config& config);

// Keys of the TOML file, at top level: method (string; "off" and "observe" too), writers (integer),
// cycle (size string or integer), require, verify, quiet, log (booleans), log_dir (string).
// Changes `config` only on success. Never crashes, whatever the text.
Result<void> apply_toml(std::string_view text, Config& config);

// The variables: PENSTOCK_DISABLE=1, PENSTOCK_OBSERVE=1, PENSTOCK_CONFIG, PENSTOCK_METHOD,
// PENSTOCK_WRITERS, PENSTOCK_CYCLE, PENSTOCK_REQUIRE, PENSTOCK_VERIFY, PENSTOCK_QUIET,
// PENSTOCK_LOG (0: no log), PENSTOCK_LOG_DIR, PENSTOCK_ALL_RANKS. `get` is getenv-like (nullptr:
// unset; empty is taken for unset).
using GetVariable = std::function<const char*(const char* name)>;
Result<Config> load_config(const GetVariable& get);

}  // namespace penstock::engine
