// A datatype's handle becomes layout's neutral description, recursively, and
// that a loop tree. Only the numbers that differ between MPI libraries are translated here.
#include "pmpi/decode_datatype.hpp"

#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "layout/type_description.hpp"
#include "pmpi/held_view.hpp"
#include "pmpi/type_contents.hpp"

namespace penstock::pmpi {
namespace {

using layout::Combiner;
using layout::LoopTree;
using layout::TypeDescription;

// Deep enough for any program, and far from the end of a small thread's stack.
constexpr int kDeepest = 256;

// MPI-3 removed the names of the forms that Fortran's old HVECTOR, HINDEXED and STRUCT make, but
// libraries still have the values, right before those of the new forms. The standard ABI has not.
#ifdef MPI_ABI
constexpr int kHvectorInteger = -1, kHindexedInteger = -2, kStructInteger = -3;
#else
constexpr int kHvectorInteger = MPI_COMBINER_HVECTOR - 1;
constexpr int kHindexedInteger = MPI_COMBINER_HINDEXED - 1;
constexpr int kStructInteger = MPI_COMBINER_STRUCT - 1;
#endif

std::optional<Combiner> neutral(int combiner) {
  switch (combiner) {
    case MPI_COMBINER_DUP:
      return Combiner::dup;
    case MPI_COMBINER_CONTIGUOUS:
      return Combiner::contiguous;
    case MPI_COMBINER_VECTOR:
      return Combiner::vector;
    case kHvectorInteger:
    case MPI_COMBINER_HVECTOR:
      return Combiner::hvector;
    case MPI_COMBINER_INDEXED:
      return Combiner::indexed;
    case kHindexedInteger:
    case MPI_COMBINER_HINDEXED:
      return Combiner::hindexed;
    case MPI_COMBINER_INDEXED_BLOCK:
      return Combiner::indexed_block;
    case MPI_COMBINER_HINDEXED_BLOCK:
      return Combiner::hindexed_block;
    case kStructInteger:
    case MPI_COMBINER_STRUCT:
      return Combiner::structure;
    case MPI_COMBINER_SUBARRAY:
      return Combiner::subarray;
    case MPI_COMBINER_DARRAY:
      return Combiner::darray;
    case MPI_COMBINER_RESIZED:
      return Combiner::resized;
    default:
      return std::nullopt;
  }
}

void translate_order(int32_t& order) {
  order = order == MPI_ORDER_FORTRAN ? layout::kOrderFortran : layout::kOrderC;
}

void translate_distribution(int32_t& distribution) {
  if (distribution == MPI_DISTRIBUTE_BLOCK) {
    distribution = layout::kDistributeBlock;
  } else if (distribution == MPI_DISTRIBUTE_CYCLIC) {
    distribution = layout::kDistributeCyclic;
  } else {
    distribution = layout::kDistributeNone;
  }
}

// DARRAY: size, rank, ndims, gsizes[ndims] (small counts only), distribs, dargs, psizes, order.
void translate_darray(TypeDescription& d) {
  const auto n = size_t(d.integers[2]);
  const size_t distribs = d.large_count ? 3 : 3 + n;
  for (size_t i = 0; i < n; ++i) {
    translate_distribution(d.integers[distribs + i]);
    int32_t& argument = d.integers[distribs + n + i];
    if (argument == MPI_DISTRIBUTE_DFLT_DARG) argument = layout::kDistributeDefaultArg;
  }
  translate_order(d.integers.back());
}

// The members of a pair type, as the C compiler lays them out.
template <class First, class Second>
std::vector<LoopTree::Block> pair_parts() {
  struct Pair {
    First first;
    Second second;
  };
  return {{0, int64_t(sizeof(First))}, {int64_t(offsetof(Pair, second)), int64_t(sizeof(Second))}};
}

std::optional<std::vector<LoopTree::Block>> parts_of_pair(MPI_Datatype type) {
  if (type == MPI_DOUBLE_INT) return pair_parts<double, int>();
  if (type == MPI_LONG_INT) return pair_parts<long, int>();
  if (type == MPI_SHORT_INT) return pair_parts<short, int>();
  if (type == MPI_LONG_DOUBLE_INT) return pair_parts<long double, int>();
  return std::nullopt;
}

Result<LoopTree> decode_predefined(MPI_Datatype type) {
  MPI_Count size = 0, lb = 0, extent = 0;
  PMPI_Type_size_x(type, &size);
  PMPI_Type_get_extent_x(type, &lb, &extent);
  TypeDescription d;
  d.named_lb = lb;
  d.named_extent = extent;
  d.named_parts = {{lb, size}};
  if (size == extent) return layout::decode(d);
  auto pair = parts_of_pair(type);
  if (!pair) {
    return fail(ErrorClass::unsupported, "datatype",
                "a predefined type of " + std::to_string(size) + " bytes in an extent of " +
                    std::to_string(extent) + " that is no known pair");
  }
  d.named_parts = *std::move(pair);
  return layout::decode(d);
}

// A library may pad a structure's extent for alignment as it likes: its word counts.
TypeDescription::Bounds bounds_of(MPI_Datatype type) {
  MPI_Count lb = 0, extent = 0;
  PMPI_Type_get_extent_x(type, &lb, &extent);
  return {lb, extent};
}

Result<LoopTree> decode_fresh(MPI_Datatype type, int depth);

// Decodes and frees the children, all of them, also after one failed.
Result<std::vector<LoopTree>> decode_children(const std::vector<MPI_Datatype>& types, int depth) {
  Result<std::vector<LoopTree>> trees;
  if (depth >= kDeepest)
    trees = fail(ErrorClass::unsupported, "datatype", "nested more than 256 deep");
  for (MPI_Datatype type : types) {
    if (trees) {
      auto tree = decode_fresh(type, depth + 1);
      if (tree) {
        trees->push_back(*std::move(tree));
      } else {
        trees = tl::unexpected(std::move(tree.error()));
      }
    }
    release(type);
  }
  return trees;
}

Result<LoopTree> decode_fresh(MPI_Datatype type, int depth) {
  TypeContents c = contents_of(type);
  if (is_predefined(c.combiner)) return decode_predefined(type);
  auto children = decode_children(c.types, depth);
  if (!children) return tl::unexpected(std::move(children.error()));
  const auto combiner = neutral(c.combiner);
  if (!combiner) {
    return fail(ErrorClass::unsupported, "datatype",
                "combiner " + std::to_string(c.combiner) + " of this MPI library");
  }
  TypeDescription d;
  d.combiner = *combiner;
  d.large_count = c.large_count;
  d.integers = std::move(c.integers);
  d.addresses = std::move(c.addresses);
  d.large_counts = std::move(c.large_counts);
  d.children = *std::move(children);
  d.reported_bounds = bounds_of(type);
  if (*combiner == Combiner::subarray) translate_order(d.integers.back());
  if (*combiner == Combiner::darray) translate_darray(d);
  return layout::decode(d);
}

// --- What is kept ---

int delete_tree(MPI_Datatype, int, void* tree, void*) {
  delete static_cast<LoopTree*>(tree);
  return MPI_SUCCESS;
}

int tree_key() {
  static const int key = [] {
    int k = MPI_KEYVAL_INVALID;
    PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, &delete_tree, &k, nullptr);
    return k;
  }();
  return key;
}

class PredefinedTrees {
 public:
  std::optional<LoopTree> find(MPI_Datatype type) {
    const std::lock_guard lock(mutex_);
    const auto it = trees_.find(type);
    if (it == trees_.end()) return std::nullopt;
    return it->second;
  }
  void keep(MPI_Datatype type, const LoopTree& tree) {
    const std::lock_guard lock(mutex_);
    trees_.emplace(type, tree);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<MPI_Datatype, LoopTree> trees_;
};

// The trees that datatypes have with them. One that is there stays as long as its datatype, which
// several threads may meet for the first time at once.
class DerivedTrees {
 public:
  std::optional<LoopTree> find(MPI_Datatype type) {
    const std::lock_guard lock(mutex_);
    if (const LoopTree* tree = kept_with(type)) return *tree;
    return std::nullopt;
  }
  void keep(MPI_Datatype type, const LoopTree& tree) {
    const std::lock_guard lock(mutex_);
    if (kept_with(type) == nullptr) PMPI_Type_set_attr(type, tree_key(), new LoopTree(tree));
  }

 private:
  static const LoopTree* kept_with(MPI_Datatype type) {
    void* kept = nullptr;
    int found = 0;
    PMPI_Type_get_attr(type, tree_key(), static_cast<void*>(&kept), &found);
    return found != 0 ? static_cast<const LoopTree*>(kept) : nullptr;
  }

  std::mutex mutex_;
};

Result<LoopTree> decode_derived(MPI_Datatype type) {
  static DerivedTrees& derived = *new DerivedTrees;
  if (auto tree = derived.find(type)) return *std::move(tree);
  auto tree = decode_fresh(type, 0);
  if (tree) derived.keep(type, *tree);
  return tree;
}

}  // namespace

Result<LoopTree> decode_datatype(MPI_Datatype type, MPI_Comm quiet) {
  static PredefinedTrees& predefined = *new PredefinedTrees;
  if (auto tree = predefined.find(type)) return *std::move(tree);
  // Before anything else is asked of it, whose errors would go to the communicators' handlers.
  if (!is_committed(type, quiet))
    return fail(ErrorClass::argument, "datatype", "is none, or is not committed");
  if (combiner_of(type) != MPI_COMBINER_NAMED) return decode_derived(type);
  auto tree = decode_predefined(type);
  if (tree) predefined.keep(type, *tree);
  return tree;
}

int64_t plain_bytes(MPI_Datatype type, MPI_Comm quiet) {
  if (combiner_of(type) != MPI_COMBINER_NAMED) return 0;
  const auto tree = decode_datatype(type, quiet);
  return tree && tree->is_contiguous() && tree->true_lb() == 0 ? tree->size() : 0;
}

}  // namespace penstock::pmpi
