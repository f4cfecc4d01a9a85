// Hints that are not Penstock's own, for programs that know nothing of it: those that MPI reserves
// (cb_nodes, cb_buffer_size, striping_unit, striping_factor; MPI-4.1, 14.2.8) and ROMIO's
// romio_cb_write. They fill what Penstock's configuration leaves open, and what is in effect is
// told.
#pragma once

#include <map>
#include <span>
#include <string>

#include "engine/config.hpp"
#include "layout/geometry.hpp"
#include "plan/plan.hpp"

namespace penstock::engine {

using HintValues = std::map<std::string, std::string, std::less<>>;

std::span<const char* const> foreign_hints();  // the keys

// `given` holds what a program says of these keys. A value that is not valid is ignored, as MPI
// demands, and noted in `config.ignored_hints`; one that the configuration has the say about is
// ignored without a word.
void apply_foreign_hints(const HintValues& given, Config& config);

// Of a file that is served to this team on a file system of this geometry. Without a method by
// name: what holds where ranks interleave. striping_unit only where there are stripes,
// striping_factor only where it decided how many ranks write.
HintValues hints_in_effect(const Config& config, const plan::Team& team,
                           const layout::Geometry& geometry);

}  // namespace penstock::engine
