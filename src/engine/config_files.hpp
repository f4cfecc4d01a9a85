// Which configuration files there are for a process, and whether they may be trusted.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/config.hpp"

namespace penstock::engine {

struct Candidate {
  std::string path;
  Layer layer = Layer::builtin;
  bool required = false;       // named by somebody: its absence is an error
  std::vector<uid_t> trusted;  // owners whose word counts
};

// In the order in which they apply; `config_option` tells which layer PENSTOCK_CONFIG is in.
std::vector<Candidate> candidates(const Surroundings& surroundings, bool config_is_option);

// The text; nullopt when there is no such file and none is required. Refused: what is not a regular
// file, is larger than 1 MiB, may be written by group or others, or belongs to a stranger. All of
// it is asked of the opened descriptor, so that nobody can exchange the file in between.
Result<std::optional<std::string>> read_trusted(const Candidate& candidate);

}  // namespace penstock::engine
