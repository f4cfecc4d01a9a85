// SUBARRAY and DARRAY as nested loops, from the fastest dimension outwards. Both
// end with the bounds of the whole array, which is what lets them tile a file.
#include "layout/decode_array.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "layout/node.hpp"

namespace penstock::layout {
namespace {

// The arguments in order, whichever of the two lists the constructor put them in: the first
// `leading` integers, then the large counts where there are any, then the other integers.
Result<std::vector<int64_t>> arguments_of(const TypeDescription& d, size_t leading) {
  if (!d.addresses.empty() || (!d.large_count && !d.large_counts.empty())) {
    return contradiction("arguments of another constructor");
  }
  if (d.integers.size() < leading) return contradiction("too few arguments");
  std::vector<int64_t> all(d.integers.begin(), d.integers.begin() + int64_t(leading));
  all.insert(all.end(), d.large_counts.begin(), d.large_counts.end());
  all.insert(all.end(), d.integers.begin() + int64_t(leading), d.integers.end());
  return all;
}

// `n` lists of `dimensions` values behind `leading` arguments, and the order as the last.
class Lists {
 public:
  static Result<Lists> make(const TypeDescription& d, size_t leading, int n) {
    auto arguments = arguments_of(d, leading);
    if (!arguments) return tl::unexpected(arguments.error());
    const int64_t dimensions = d.integers[leading - 1];
    if (dimensions < 1) return contradiction(std::to_string(dimensions) + " dimensions");
    if (Wide(arguments->size()) != leading + Wide(n) * dimensions + 1) {
      return contradiction(std::to_string(arguments->size()) + " arguments");
    }
    if (d.children.size() != 1) return contradiction("no one inner type");
    const int64_t order = arguments->back();
    if (order != kOrderC && order != kOrderFortran) return contradiction("an unknown order");
    return Lists(std::move(*arguments), leading, dimensions);
  }

  int64_t dimensions() const { return dimensions_; }
  int64_t leading(size_t i) const { return arguments_[i]; }
  int64_t at(int list, int64_t dimension) const {
    return arguments_[leading_ + size_t(list * dimensions_ + dimension)];
  }
  // The dimension whose elements lie `i`-th closest together.
  int64_t fastest(int64_t i) const {
    return arguments_.back() == kOrderFortran ? i : dimensions_ - 1 - i;
  }

 private:
  Lists(std::vector<int64_t> arguments, size_t leading, int64_t dimensions)
      : arguments_(std::move(arguments)), leading_(leading), dimensions_(dimensions) {}

  std::vector<int64_t> arguments_;
  size_t leading_;
  int64_t dimensions_;
};

// What is taken of one dimension: full blocks at a regular distance, and a shorter one at the end.
// All in elements of the dimension.
struct Share {
  int64_t begin = 0, block = 0, blocks = 0, distance = 0, tail = 0;
};

Result<Off> product(Wide a, int64_t b) {
  if (!fits(a * b)) return fail(ErrorClass::argument, "datatype", "the array exceeds 64 bits");
  return Off(a * b);
}

// Wraps `inner` in one more dimension, whose elements lie `pitch` bytes apart.
Result<LoopTree> add_dimension(const LoopTree& inner, const Share& s, Off pitch) {
  auto element = LoopTree::resized(inner, inner.lb(), pitch);
  const auto begin = product(s.begin, pitch);
  const auto distance = product(s.distance, pitch);
  const auto tail = product(s.begin + Wide(s.blocks) * s.distance, pitch);
  if (!element) return element;
  if (!begin) return tl::unexpected(begin.error());
  if (!distance) return tl::unexpected(distance.error());
  if (s.tail > 0 && !tail) return tl::unexpected(tail.error());
  auto full = LoopTree::strided(s.blocks, s.block, *distance, *element);
  if (!full) return full;
  const LoopTree::Field fields[] = {{*begin, 1, std::move(*full)},
                                    {tail.value_or(0), s.tail, std::move(*element)}};
  return LoopTree::structure(fields);
}

// All dimensions, and then the bounds of the whole array.
template <class SizeOf, class ShareOf>
Result<LoopTree> nest(const Lists& lists, const LoopTree& child, SizeOf size_of, ShareOf share_of) {
  Result<LoopTree> tree = child;
  Off pitch = child.extent();
  for (int64_t i = 0; i < lists.dimensions(); ++i) {
    const int64_t dimension = lists.fastest(i);
    const Result<Share> share = share_of(dimension);
    if (!share) return tl::unexpected(share.error());
    tree = add_dimension(*tree, *share, pitch);
    if (!tree) return tree;
    const auto next = product(pitch, size_of(dimension));
    if (!next) return tl::unexpected(next.error());
    pitch = *next;
  }
  return LoopTree::resized(*tree, 0, pitch);
}

Result<Share> block_share(int64_t size, int64_t arg, int64_t processes, int64_t at) {
  const int64_t block = arg == kDistributeDefaultArg ? 1 + (size - 1) / processes : arg;
  if (block < 1) return contradiction("a block of " + std::to_string(block));
  if (Wide(block) * processes < size) return contradiction("blocks that do not cover the array");
  const Wide begin = Wide(block) * at;
  if (begin >= size) return Share{};
  return Share{int64_t(begin), std::min(block, int64_t(size - begin)), 1, 0, 0};
}

Result<Share> cyclic_share(int64_t size, int64_t arg, int64_t processes, int64_t at) {
  const int64_t block = arg == kDistributeDefaultArg ? 1 : arg;
  if (block < 1) return contradiction("a block of " + std::to_string(block));
  const Wide begin = Wide(block) * at, round = Wide(block) * processes;
  if (begin >= size) return Share{};
  const Wide rounds = (size - begin) / round, left = (size - begin) % round;
  const bool one_more = left >= block;
  const int64_t blocks = int64_t(rounds) + (one_more ? 1 : 0);
  // With one block there is no distance, and a round may exceed 64 bits.
  const int64_t distance = blocks > 1 || rounds > 0 ? int64_t(round) : 0;
  return Share{int64_t(begin), block, blocks, distance, one_more ? 0 : int64_t(left)};
}

enum DarrayLeading : size_t { kSize, kRank, kDimensions, kLeading };
enum DarrayList : int { kGlobalSizes, kDistributions, kArguments, kProcesses, kLists };

Result<Share> share_of(const Lists& lists, int64_t dimension, int64_t at) {
  const int64_t size = lists.at(kGlobalSizes, dimension);
  const int64_t arg = lists.at(kArguments, dimension);
  const int64_t processes = lists.at(kProcesses, dimension);
  if (size < 1) return contradiction("an array of size " + std::to_string(size));
  switch (lists.at(kDistributions, dimension)) {
    case kDistributeBlock:
      return block_share(size, arg, processes, at);
    case kDistributeCyclic:
      return cyclic_share(size, arg, processes, at);
    case kDistributeNone:
      if (processes != 1) return contradiction("an undistributed dimension over processes");
      return Share{0, size, 1, 0, 0};
    default:
      return contradiction("an unknown distribution");
  }
}

// Coordinates in the process grid, which is row-major whatever the array's order.
Result<std::vector<int64_t>> coordinates(const Lists& lists) {
  int64_t rest = lists.leading(kRank);
  Wide grid = 1;
  std::vector<int64_t> at(size_t(lists.dimensions()));
  for (int64_t d = lists.dimensions() - 1; d >= 0; --d) {
    const int64_t processes = lists.at(kProcesses, d);
    if (processes < 1) return contradiction(std::to_string(processes) + " processes");
    grid *= processes;
    if (grid > lists.leading(kSize)) return contradiction("a grid larger than the job");
    at[size_t(d)] = rest % processes;
    rest /= processes;
  }
  if (grid != lists.leading(kSize)) return contradiction("a grid smaller than the job");
  if (lists.leading(kRank) < 0 || rest != 0) return contradiction("a rank outside the grid");
  return at;
}

}  // namespace

Result<LoopTree> decode_subarray(const TypeDescription& d) {
  const auto lists = Lists::make(d, 1, 3);
  if (!lists) return tl::unexpected(lists.error());
  enum { kSizes, kSubsizes, kStarts };
  const auto size_of = [&](int64_t dimension) { return lists->at(kSizes, dimension); };
  const auto share = [&](int64_t dimension) -> Result<Share> {
    const int64_t size = size_of(dimension), start = lists->at(kStarts, dimension);
    const int64_t subsize = lists->at(kSubsizes, dimension);
    const bool inside = size >= 0 && subsize >= 0 && start >= 0 && subsize <= size - start;
    if (!inside) return contradiction("a sub-array outside its array");
    return Share{start, subsize, 1, 0, 0};
  };
  return nest(*lists, d.children.front(), size_of, share);
}

Result<LoopTree> decode_darray(const TypeDescription& d) {
  const auto lists = Lists::make(d, kLeading, kLists);
  if (!lists) return tl::unexpected(lists.error());
  const auto at = coordinates(*lists);
  if (!at) return tl::unexpected(at.error());
  const auto size_of = [&](int64_t dimension) { return lists->at(kGlobalSizes, dimension); };
  const auto share = [&](int64_t dimension) {
    return share_of(*lists, dimension, (*at)[size_t(dimension)]);
  };
  return nest(*lists, d.children.front(), size_of, share);
}

}  // namespace penstock::layout
