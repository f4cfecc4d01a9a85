// What MPI_Type_get_envelope and MPI_Type_get_contents say, in one form for libraries
// with and without large counts.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

namespace penstock::pmpi {

struct TypeContents {
  int combiner = 0;
  bool large_count = false;  // made by a _c constructor
  std::vector<int32_t> integers;
  std::vector<int64_t> addresses, large_counts;
  std::vector<MPI_Datatype> types;  // derived ones are the caller's to free
};

// The combiner alone for predefined types, which have no contents.
TypeContents contents_of(MPI_Datatype type);

int combiner_of(MPI_Datatype type);
bool is_predefined(int combiner) noexcept;
// Frees a type that contents_of gave, unless it is predefined.
void release(MPI_Datatype type);

}  // namespace penstock::pmpi
