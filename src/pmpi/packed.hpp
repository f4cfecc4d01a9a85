// Memory that only the MPI library can read: of a type that Penstock cannot, or of a device.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

#include "layout/loop_tree.hpp"
#include "pmpi/serve_write.hpp"

namespace penstock::pmpi {

// Packed by the library, which in one job on one kind of machine gives its bytes as they are.
struct Packed {
  std::vector<std::byte> bytes;
  layout::LoopTree tree;  // of one copy of the type
  bool has_gaps = true;   // the program's memory, as far as is known
};

// REQUIRES a committed type and a count that is not negative. Another answer than MPI_SUCCESS is
// MPI_ERR_UNSUPPORTED_OPERATION.
int pack_by_library(const WriteArguments& a, MPI_Comm comm, Packed& packed);
// The other way: what was read went over the packed data that were there, so what was not read is
// put back as it was.
int unpack_by_library(const WriteArguments& a, MPI_Comm comm, const Packed& packed);

}  // namespace penstock::pmpi
