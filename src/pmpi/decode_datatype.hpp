// MPI datatypes as loop trees.
#pragma once

#include <mpi.h>

#include "base/error.hpp"
#include "layout/loop_tree.hpp"

namespace penstock::pmpi {

// REQUIRES a valid, not null datatype. Trees of predefined types are kept for ever, those of
// derived types as an attribute on the type, so they die with it and a reused handle starts afresh.
// `quiet`: as for is_committed().
Result<layout::LoopTree> decode_datatype(MPI_Datatype type, MPI_Comm quiet);

// How many bytes a predefined type has, where they are adjacent; 0 of any other type. Such a handle
// is never another type's.
int64_t plain_bytes(MPI_Datatype type, MPI_Comm quiet);

}  // namespace penstock::pmpi
