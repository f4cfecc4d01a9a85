// Whether a program is one that pushes its files to the device, by what it is linked to.
#pragma once

#include <string_view>

namespace penstock::engine {

// A function by which programs ask for that: of MPI-IO, HDF5, netCDF, PnetCDF or Penstock, in C or
// in Fortran, however the compiler spells it.
bool is_sync_function(std::string_view name);

// Tells io, once in a process. By any thread.
void expect_syncs_by_symbols();

}  // namespace penstock::engine
