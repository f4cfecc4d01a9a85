// From a datatype's envelope and contents to a loop tree (MPI-4.1, 5.1.13). Both
// forms of a constructor, small and large count, list the same arguments in the
// same order once their parts are joined, so each combiner is decoded once.
#include <new>
#include <span>
#include <string>
#include <utility>

#include "layout/decode_array.hpp"
#include "layout/indexed.hpp"
#include "layout/type_description.hpp"

namespace penstock::layout {
namespace {

// The arguments of all combiners but the arrays, where they lie: integers, then addresses; or the
// large counts.
class Arguments {
 public:
  Arguments() = default;

  static Result<Arguments> of(const TypeDescription& d) {
    if (d.large_count && !(d.integers.empty() && d.addresses.empty())) {
      return contradiction("small arguments beside large counts");
    }
    if (!d.large_count && !d.large_counts.empty()) {
      return contradiction("large counts from a constructor without them");
    }
    Arguments a;
    a.small_ = d.integers;
    a.large_ = d.large_count ? d.large_counts : d.addresses;
    return a;
  }

  size_t size() const noexcept { return small_.size() + large_.size(); }
  int64_t operator[](size_t i) const noexcept {
    return i < small_.size() ? small_[i] : large_[i - small_.size()];
  }

 private:
  std::span<const int32_t> small_;
  std::span<const int64_t> large_;
};

// Decodes one combiner: its arguments, taken from the front, and its children.
class Decoder {
 public:
  Decoder(const TypeDescription& description, const Arguments& arguments)
      : d_(description), arguments_(arguments) {}

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
  int64_t count() const { return arguments_.size() == 0 ? -1 : at(0); }

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
  Wide unit() const {
    const bool in_elements = d_.combiner == Combiner::vector || d_.combiner == Combiner::indexed ||
                             d_.combiner == Combiner::indexed_block;
    return in_elements ? child().extent() : 1;
  }

  Result<LoopTree> named() const {
    auto tree = LoopTree::indexed(d_.named_parts, LoopTree::bytes(1));
    if (!tree) return tree;
    return LoopTree::resized(*tree, d_.named_lb, d_.named_extent);
  }

  Result<LoopTree> strided() const {
    const Wide stride = at(2) * unit();
    if (!fits(stride)) return fail(ErrorClass::argument, "datatype", "its stride overflows");
    return LoopTree::strided(at(0), at(1), Off(stride), child());
  }

  Result<LoopTree> indexed() const {
    const auto n = size_t(count());
    const auto block = [this, n, unit = unit()](size_t i) {
      return IndexedBlock{at(1 + n + i) * unit, at(1 + i)};
    };
    return make_indexed(n, block, child());
  }

  Result<LoopTree> indexed_block() const {
    const auto block = [this, unit = unit(), each = at(1)](size_t i) {
      return IndexedBlock{at(2 + i) * unit, each};
    };
    return make_indexed(size_t(count()), block, child());
  }

  Result<LoopTree> structure() const {
    const auto n = size_t(count());
    std::vector<LoopTree::Field> fields(n);
    for (size_t i = 0; i < n; ++i) fields[i] = {at(1 + n + i), at(1 + i), d_.children[i]};
    return LoopTree::structure(fields);
  }

  const TypeDescription& d_;
  Arguments arguments_;
};

Result<LoopTree> decode_body(const TypeDescription& d) {
  if (d.combiner == Combiner::subarray) return decode_subarray(d);
  if (d.combiner == Combiner::darray) return decode_darray(d);
  const bool predefined = d.combiner == Combiner::named || d.combiner >= Combiner::f90_real;
  // What parameterises a Fortran type is in its parts already.
  if (predefined) return Decoder(d, {}).decode();
  const auto arguments = Arguments::of(d);
  if (!arguments) return tl::unexpected(arguments.error());
  return Decoder(d, *arguments).decode();
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
