// The entry points that the engine has functions of its own for: TAKE in entry_points.def.
// Signatures are the MPI library's.
#pragma once

#include <mpi.h>

namespace penstock::pmpi {

#define PENSTOCK_ENTRY(name, arguments, treatment) PENSTOCK_DECLARE_##treatment(name)
#define PENSTOCK_DECLARE_TAKE(name) extern decltype(PMPI_File_##name) take_##name;
#define PENSTOCK_DECLARE_DIRECT(name)
#define PENSTOCK_DECLARE_FLUSH(name)
#define PENSTOCK_DECLARE_READ(name)
#define PENSTOCK_DECLARE_WRITE(name)
#include "pmpi/entry_points.def"

int take_finalize();

}  // namespace penstock::pmpi
