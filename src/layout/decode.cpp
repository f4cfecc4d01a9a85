// From a datatype's envelope and contents to a loop tree (MPI-4.1, 5.1.13). Both
// forms of a constructor, small and large count, list the same arguments in the
// same order once their parts are joined, so each combiner is decoded once.
#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "layout/decode_array.hpp"
#include "layout/node.hpp"
#include "layout/type_description.hpp"

namespace penstock::layout {
namespace {

tl::unexpected<Error> contradiction(std::string why) {
  return fail(ErrorClass::argument, "datatype", "contradicts itself: " + std::move(why));
}

std::vector<int64_t> joined(std::span<const int64_t> a, std::span<const int64_t> b) {
  std::vector<int64_t> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

// The arguments of all combiners but the arrays: integers, then addresses; or the large counts.
Result<std::vector<int64_t>> arguments_of(const TypeDescription& d) {
  if (d.large_count && !(d.integers.empty() && d.addresses.empty())) {
    return contradiction("small arguments beside large counts");
  }
  if (!d.large_count && !d.large_counts.empty()) {
    return contradiction("large counts from a constructor without them");
  }
  return d.large_count ? d.large_counts : joined(d.integers, d.addresses);
}

// Decodes one combiner: its arguments, taken from the front, and its children.
class Decoder {
 public:
  Decoder(const TypeDescription& description, std::vector<int64_t> arguments)
      : d_(description), arguments_(std::move(arguments)) {}

  Result<LoopTree> decode() const {
    switch (d_.combiner) {
      case Combiner::named:
      case Combiner::f90_real:
      case Combiner::f90_complex:
      case Combiner::f90_integer:
        return named();
      case Combiner::dup:
        return has(0, 1).map([&] { return child(); });
      case Combiner::contiguous:
        return has(1, 1).and_then([&] { return LoopTree::contiguous(at(0), child()); });
      case Combiner::vector:
      case Combiner::hvector:
        return has(3, 1).and_then([&] { return strided(); });
      case Combiner::indexed:
      case Combiner::hindexed:
        return has_lists(1, 2, 1).and_then([&] { return indexed(); });
      case Combiner::indexed_block:
      case Combiner::hindexed_block:
        return has_lists(2, 1, 1).and_then([&] { return indexed_block(); });
      case Combiner::structure:
        return has_lists(1, 2, count()).and_then([&] { return structure(); });
      case Combiner::resized:
        return has(2, 1).and_then([&] { return LoopTree::resized(child(), at(0), at(1)); });
      default:
        return fail(ErrorClass::unsupported, "datatype",
                    "no decoder for combiner " + std::to_string(int(d_.combiner)));
    }
  }

 private:
  int64_t at(size_t i) const { return arguments_[i]; }
  const LoopTree& child() const { return d_.children.front(); }
  // The first argument of a list combiner; -1 when there is none.
  int64_t count() const { return arguments_.empty() ? -1 : arguments_.front(); }

  Result<void> has(Wide arguments, int64_t children) const {
    if (Wide(arguments_.size()) != arguments) {
      return contradiction(std::to_string(arguments_.size()) + " arguments");
    }
    if (int64_t(d_.children.size()) != children) {
      return contradiction(std::to_string(d_.children.size()) + " inner types");
    }
    return {};
  }

  // `fixed` arguments, the count among them, and `lists` lists of `count` each.
  Result<void> has_lists(int64_t fixed, int64_t lists, int64_t children) const {
    if (count() < 0) return contradiction("count " + std::to_string(count()));
    return has(fixed + Wide(lists) * count(), children);
  }

  // In elements of the child for VECTOR and INDEXED, in bytes for the H forms.
  Result<Off> bytes_of(int64_t displacement) const {
    const bool in_elements = d_.combiner == Combiner::vector || d_.combiner == Combiner::indexed ||
                             d_.combiner == Combiner::indexed_block;
    const Wide bytes = in_elements ? Wide(displacement) * child().extent() : Wide(displacement);
    if (!fits(bytes)) return fail(ErrorClass::argument, "datatype", "a displacement overflows");
    return Off(bytes);
  }

  Result<LoopTree> named() const {
    auto tree = LoopTree::indexed(d_.named_parts, LoopTree::bytes(1));
    if (!tree) return tree;
    return LoopTree::resized(*tree, d_.named_lb, d_.named_extent);
  }

  Result<LoopTree> strided() const {
    const auto stride = bytes_of(at(2));
    if (!stride) return tl::unexpected(stride.error());
    return LoopTree::strided(at(0), at(1), *stride, child());
  }

  Result<LoopTree> indexed() const {
    const auto n = size_t(count());
    return blocks(
        n, [&](size_t i) { return at(1 + i); }, [&](size_t i) { return at(1 + n + i); });
  }

  Result<LoopTree> indexed_block() const {
    return blocks(
        size_t(count()), [&](size_t) { return at(1); }, [&](size_t i) { return at(2 + i); });
  }

  template <class CountOf, class PlaceOf>
  Result<LoopTree> blocks(size_t n, CountOf count_of, PlaceOf place_of) const {
    std::vector<LoopTree::Block> blocks(n);
    for (size_t i = 0; i < n; ++i) {
      const auto place = bytes_of(place_of(i));
      // An empty block may lie anywhere: its displacement has no meaning.
      if (!place && count_of(i) != 0) return tl::unexpected(place.error());
      blocks[i] = {place.value_or(0), count_of(i)};
    }
    return LoopTree::indexed(blocks, child());
  }

  Result<LoopTree> structure() const {
    const auto n = size_t(count());
    std::vector<LoopTree::Field> fields(n);
    for (size_t i = 0; i < n; ++i) fields[i] = {at(1 + n + i), at(1 + i), d_.children[i]};
    return LoopTree::structure(fields);
  }

  const TypeDescription& d_;
  std::vector<int64_t> arguments_;
};

Result<LoopTree> decode_body(const TypeDescription& d) {
  if (d.combiner == Combiner::subarray) return decode_subarray(d);
  if (d.combiner == Combiner::darray) return decode_darray(d);
  const bool predefined = d.combiner == Combiner::named || d.combiner >= Combiner::f90_real;
  // What parameterises a Fortran type is in its parts already.
  if (predefined) return Decoder(d, {}).decode();
  auto arguments = arguments_of(d);
  if (!arguments) return tl::unexpected(arguments.error());
  return Decoder(d, std::move(*arguments)).decode();
}

}  // namespace

Result<LoopTree> decode(const TypeDescription& description) try {
  auto tree = decode_body(description);
  if (!tree || !description.reported_bounds) return tree;
  const auto& bounds = *description.reported_bounds;
  return LoopTree::resized(*tree, bounds.lb, bounds.extent);
} catch (const std::bad_alloc&) {
  return fail(ErrorClass::no_memory, "datatype", "not enough memory to decode it");
}

}  // namespace penstock::layout
