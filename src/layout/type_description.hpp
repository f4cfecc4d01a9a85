// An MPI datatype's envelope and contents in neutral form: what
// MPI_Type_get_envelope and MPI_Type_get_contents (or their _c forms) say,
// without MPI. src/pmpi fills it from a handle; `decode` makes a loop tree.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "layout/loop_tree.hpp"

namespace penstock::layout {

enum class Combiner : uint8_t {
  named,  // predefined: `named_parts` say where its bytes lie
  dup,
  contiguous,
  vector,
  hvector,
  indexed,
  hindexed,
  indexed_block,
  hindexed_block,
  structure,
  subarray,
  darray,
  resized,
  f90_real,     // predefined, parameterised: like named
  f90_complex,  //
  f90_integer,  //
};
inline constexpr int kCombiners = int(Combiner::f90_integer) + 1;

// `integers` and `addresses` hold what the MPI standard lists for the combiner (MPI-4.1, 5.1.13),
// in its order; with the large-count interface `large_counts` come after the integers. For HVECTOR
// and friends made by _c constructors the strides are among the counts: `large_count` tells.
struct TypeDescription {
  Combiner combiner = Combiner::named;
  bool large_count = false;  // made by a _c constructor: counts are in `large_counts`
  std::vector<int32_t> integers;
  std::vector<int64_t> addresses;
  std::vector<int64_t> large_counts;
  std::vector<LoopTree> children;  // already decoded
  // For `named` and f90_*: bytes in stream order (pair types have holes), and the extent.
  std::vector<LoopTree::Block> named_parts;  // displacement and byte count
  int64_t named_extent = 0;
  Off named_lb = 0;
  // The bounds that the library reports (MPI_Type_get_extent), where known: they win over those
  // computed here, because a library may pad a structure for alignment as it likes.
  struct Bounds {
    Off lb = 0;
    int64_t extent = 0;
  };
  std::optional<Bounds> reported_bounds;
};

// Values of MPI_ORDER_* and MPI_DISTRIBUTE_* differ between libraries; src/pmpi translates to
// these.
inline constexpr int32_t kOrderC = 0, kOrderFortran = 1;
inline constexpr int32_t kDistributeBlock = 0, kDistributeCyclic = 1, kDistributeNone = 2;
inline constexpr int32_t kDistributeDefaultArg = -1;

// Fails with ErrorClass::argument when the description contradicts itself (wrong number of
// integers, negative counts, sub-array outside its array), with `unsupported` for a combiner
// that is not known. Never crashes, whatever it is given.
Result<LoopTree> decode(const TypeDescription& description);

}  // namespace penstock::layout
