// Opening a file for all ranks of a team.
#pragma once

#include <string>

#include "capi/handles.hpp"

namespace penstock::capi {

// The options that the program gave, and defaults for those that its version did not know.
Result<penstock_options> known_options(const penstock_options* given);

// Collective; the same class of error on every rank.
Result<penstock_file*> open_file(penstock_rank& rank, const char* path,
                                 const penstock_options* options);

}  // namespace penstock::capi
