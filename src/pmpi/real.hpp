// The MPI library's own file functions, as the shim found them. The engine never calls a file
// function by name: that would come back to the shim.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <cstdio>

#include "pmpi/engine_interface.h"

namespace penstock::pmpi {

extern const penstock_shim* shim;  // set once, by penstock_engine()

// decltype only: no reference to the symbol.
#define PENSTOCK_REAL(name)                       \
  (reinterpret_cast<decltype(&PMPI_File_##name)>( \
      ::penstock::pmpi::shim->real[PENSTOCK_ENTRY_##name]))

// To stderr, where that is still what it was.
template <class... T>
void say(const char* format, T... arguments) {
  if (shim->may_speak() != 0) std::fprintf(stderr, format, arguments...);
}

}  // namespace penstock::pmpi
