// The MPI library's own file functions, as the shim found them. The engine never calls a file
// function by name: that would come back to the shim.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "pmpi/engine_interface.h"

namespace penstock::pmpi {

extern const penstock_shim* shim;  // set once, by penstock_engine()

// decltype only: no reference to the symbol.
#define PENSTOCK_REAL(name)                       \
  (reinterpret_cast<decltype(&PMPI_File_##name)>( \
      ::penstock::pmpi::shim->real[PENSTOCK_ENTRY_##name]))

// Around the program's own callbacks: what they call is the program's, not the library's.
class OutsideOfUs {
 public:
  OutsideOfUs() : inside_(*shim->inside()) { *shim->inside() = 0; }
  ~OutsideOfUs() { *shim->inside() = inside_; }
  OutsideOfUs(const OutsideOfUs&) = delete;

 private:
  int inside_;
};

}  // namespace penstock::pmpi
