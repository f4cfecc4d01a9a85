// MPI datatypes with their type maps written out naively, by the rules of the MPI standard and
// independently of src/layout: every function makes the library's type and the list of byte runs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mpi_c.hpp"

namespace suite {

struct Run {
  int64_t at, length;
};

struct Type {
  std::shared_ptr<MPI_Datatype> handle;  // freed with the last copy, unless predefined
  std::vector<Run> runs;                 // the type map, in its order
  int64_t lb = 0, ub = 0;
  std::string text;  // how it was made: printed when a case fails
  bool bounded = false;

  int64_t size() const;
  int64_t extent() const { return ub - lb; }
  int64_t lowest() const;   // smallest byte touched
  int64_t highest() const;  // one behind the greatest byte touched
  bool ascending() const;   // runs in file order, without overlap
  MPI_Datatype committed() const;
};

Type predefined(MPI_Datatype t, const char* name);
// MPI_DOUBLE_INT and its kin: two basic types as the C compiler lays them out in a struct.
Type pair(MPI_Datatype t, const char* name, int64_t first_bytes, int64_t second_at,
          int64_t second_bytes, int64_t extent);

Type contiguous(int count, const Type& old);
Type vector(int count, int block, int stride, const Type& old);
Type hvector(int count, int block, int64_t stride_bytes, const Type& old);
Type indexed(const std::vector<int>& blocks, const std::vector<int>& at, const Type& old);
Type hindexed(const std::vector<int>& blocks, const std::vector<MPI_Aint>& at, const Type& old);
Type indexed_block(int block, const std::vector<int>& at, const Type& old);
Type hindexed_block(int block, const std::vector<MPI_Aint>& at, const Type& old);
Type structure(const std::vector<int>& blocks, const std::vector<MPI_Aint>& at,
               const std::vector<Type>& olds);
Type subarray(const std::vector<int>& sizes, const std::vector<int>& subsizes,
              const std::vector<int>& starts, int order, const Type& old);
Type darray(int ranks, int rank, const std::vector<int>& sizes, const std::vector<int>& distribs,
            const std::vector<int>& dargs, const std::vector<int>& psizes, int order,
            const Type& old);
Type resized(const Type& old, int64_t lb, int64_t extent);
Type duplicate(const Type& old);

// Checks that could not hold stop the program: then the oracle itself is wrong.
[[noreturn]] void oracle_is_wrong(const std::string& why);

}  // namespace suite
