// What an MPI_Info asks of Penstock.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "engine/config.hpp"

namespace penstock::pmpi {

std::optional<std::string> info_value(MPI_Info info, const char* key);

// Of all keys and values, in their order; 0 of MPI_INFO_NULL.
uint64_t hash_of_hints(MPI_Info info);

// Whether the program itself asks for a method, by name: what MPI_File_get_info told it of another
// file, whose method no hint had named, it may hand on without knowing.
bool names_method(MPI_Info info);

// Into what MPI_File_get_info answers, which may hold what the program had given at the open (Open
// MPI 4): the method; or that there is none.
void tell_method(MPI_Info info, const std::string& method, bool is_hinted);
void forget_method(MPI_Info info);

// The job's configuration for one file: [[file]] tables; then the hints penstock_method,
// penstock_writers, penstock_cycle and penstock_verify, whose wrong values are errors; then the
// job's options again, which win; then the hints of MPI and ROMIO, which fill what is open where
// they make sense here (engine/foreign_hints.hpp).
Result<engine::Config> file_config(const engine::Config& job, const std::string& path,
                                   MPI_Info info);

}  // namespace penstock::pmpi
