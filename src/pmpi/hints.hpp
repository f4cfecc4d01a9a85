// What an MPI_Info asks of Penstock.
#pragma once

#include <mpi.h>

#include <optional>
#include <string>

#include "base/error.hpp"
#include "engine/config.hpp"

namespace penstock::pmpi {

std::optional<std::string> info_value(MPI_Info info, const char* key);

// penstock_method, penstock_writers and penstock_cycle, whose wrong values are errors; cb_nodes and
// cb_buffer_size, which are ROMIO's and taken only when they make sense here.
Result<void> apply_hints(MPI_Info info, engine::Config& config);

}  // namespace penstock::pmpi
