// The plan of algorithms with one writer: a rank collects the bytes of all and writes them in file
// order.
#pragma once

#include "plan/algorithm.hpp"

namespace penstock::plan {

// As Algorithm::place; `algorithm` is its name, for messages.
Result<std::unique_ptr<const Plan>> place_one_writer(const char* algorithm, const Parameters& p,
                                                     const Team& team, const Crowd& crowd,
                                                     const layout::Geometry& geometry);

}  // namespace penstock::plan
