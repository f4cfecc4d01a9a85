// Test support: MPI's own definition of a datatype, a list of displacements, and
// random datatypes built twice from the same choices: as a TypeDescription and as that list.
// It shares no code with loop trees: what it says comes from MPI-4.1, 5.1.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "layout/type_description.hpp"

namespace penstock::layout::oracle {

// Where each byte lies, in stream order, and the bounds.
struct Typemap {
  std::vector<Off> bytes;
  Off lb = 0;
  Off ub = 0;
  Off extent() const { return ub - lb; }
};

// Copies are appended one by one, as the standard defines every constructor.
class Builder {
 public:
  void add(Off displacement, int64_t count, const Typemap& child) {
    for (int64_t i = 0; i < count; ++i) add_one(displacement + i * child.extent(), child);
  }
  Typemap done() && { return std::move(map_); }

 private:
  void add_one(Off displacement, const Typemap& child) {
    for (const Off b : child.bytes) map_.bytes.push_back(displacement + b);
    if (child.bytes.empty() && child.extent() == 0) return;
    const Off low = displacement + child.lb, high = displacement + child.ub;
    map_.lb = bounded_ ? std::min(map_.lb, low) : low;
    map_.ub = bounded_ ? std::max(map_.ub, high) : high;
    bounded_ = true;
  }
  Typemap map_;
  bool bounded_ = false;
};

// Choices drawn from bytes that a fuzzer or rapidcheck made; zeros when they run out.
class Choices {
 public:
  explicit Choices(std::span<const uint8_t> from) : from_(from) {}
  bool empty() const { return from_.empty(); }
  uint8_t byte() {
    if (from_.empty()) return 0;
    const uint8_t b = from_.front();
    from_ = from_.subspan(1);
    return b;
  }
  int64_t between(int64_t low, int64_t high) { return low + byte() % (high - low + 1); }
  bool coin() { return byte() % 2 == 1; }
  // Mostly small, at times on the edge of what fits.
  int64_t wild() {
    static constexpr int64_t kEdges[] = {INT64_MAX,        INT64_MIN, INT64_MAX / 2,
                                         int64_t{1} << 32, -1,        0};
    if (byte() % 8 == 0) return kEdges[byte() % 6];
    return int64_t(int8_t(byte())) * (byte() % 4 == 0 ? 1 << 20 : 1);
  }

 private:
  std::span<const uint8_t> from_;
};

struct Sample {
  TypeDescription description;
  Typemap map;
};

class Generator {
 public:
  explicit Generator(Choices& choices) : c_(choices) {}

  Sample type(int depth) {
    if (depth == 0 || c_.byte() % 5 == 0) return named();
    Sample s = derived(depth);
    s.description.children.shrink_to_fit();
    narrow(s.description);
    return s;
  }

 private:
  static constexpr size_t kMaxBytes = 150;  // of one typemap, so that naive lists stay short

  // A constructor without large counts has them among the integers: of an array behind the first.
  static void narrow(TypeDescription& d) {
    if (d.large_count) return;
    const int64_t leading = d.combiner == Combiner::darray     ? 3
                            : d.combiner == Combiner::subarray ? 1
                                                               : 0;
    d.integers.insert(d.integers.begin() + leading, d.large_counts.begin(), d.large_counts.end());
    d.large_counts.clear();
  }

  // Of copies of a child, so that the whole stays small.
  int64_t count_for(const Typemap& child, int64_t other = 1) {
    const int64_t n = c_.between(0, 5);
    return child.bytes.size() * size_t(n * other) > kMaxBytes ? std::min<int64_t>(n, 1) : n;
  }

  Sample named() {
    Sample s;
    s.description.combiner = c_.coin() ? Combiner::named : Combiner::f90_integer;
    const int64_t first = c_.between(1, 9), hole = c_.between(0, 4), second = c_.between(0, 5);
    s.description.named_parts = {{0, first}, {first + hole, second}};
    s.description.named_extent = first + hole + second;
    s.map.ub = s.description.named_extent;
    for (Off b = 0; b < first; ++b) s.map.bytes.push_back(b);
    for (Off b = 0; b < second; ++b) s.map.bytes.push_back(first + hole + b);
    return s;
  }

  Sample derived(int depth) {
    switch (c_.byte() % 9) {
      case 0:
        return simple(depth);
      case 1:
        return strided(depth);
      case 2:
        return indexed(depth);
      case 3:
        return indexed_block(depth);
      case 4:
        return structure(depth);
      case 5:
        return resized(depth);
      case 6:
        return subarray(depth);
      default:
        return darray(depth);
    }
  }

  Sample over(Combiner combiner, const Sample& child) {
    Sample s;
    s.description.combiner = combiner;
    s.description.large_count = c_.coin();
    s.description.children.push_back(*decode(child.description));
    return s;
  }

  // Where a constructor of this form keeps counts, until narrow(), and displacements in bytes.
  static std::vector<int64_t>& counts(Sample& s) { return s.description.large_counts; }
  static std::vector<int64_t>& places(Sample& s) {
    return s.description.large_count ? s.description.large_counts : s.description.addresses;
  }

  Sample simple(int depth) {
    const Sample child = type(depth - 1);
    if (c_.coin()) {
      Sample s = over(Combiner::dup, child);
      s.map = child.map;
      return s;
    }
    Sample s = over(Combiner::contiguous, child);
    const int64_t n = count_for(child.map);
    counts(s) = {n};
    return finish(s, [&](Builder& b) { b.add(0, n, child.map); });
  }

  Sample strided(int depth) {
    const Sample child = type(depth - 1);
    const bool in_bytes = c_.coin();
    Sample s = over(in_bytes ? Combiner::hvector : Combiner::vector, child);
    const int64_t block = count_for(child.map), n = count_for(child.map, block);
    const int64_t stride = in_bytes ? c_.between(-60, 60) : c_.between(-4, 6);
    counts(s) = {n, block};
    (in_bytes ? places(s) : counts(s)).push_back(stride);
    const Off step = in_bytes ? stride : stride * child.map.extent();
    return finish(s, [&](Builder& b) {
      for (int64_t i = 0; i < n; ++i) b.add(i * step, block, child.map);
    });
  }

  // Displacements that ascend (as file views need) or not.
  std::vector<int64_t> displacements(int64_t n, bool in_bytes) {
    const bool ascending = c_.byte() % 4 != 0;
    const int64_t reach = in_bytes ? 40 : 5;
    std::vector<int64_t> d;
    int64_t at = 0;
    for (int64_t i = 0; i < n; ++i) {
      at = ascending ? at + c_.between(0, reach) : c_.between(-reach, reach);
      d.push_back(at);
    }
    return d;
  }

  Sample indexed(int depth) {
    const Sample child = type(depth - 1);
    const bool in_bytes = c_.coin();
    Sample s = over(in_bytes ? Combiner::hindexed : Combiner::indexed, child);
    const int64_t n = count_for(child.map, 3);
    const auto where = displacements(n, in_bytes);
    counts(s) = {n};
    std::vector<int64_t> lengths;
    for (int64_t i = 0; i < n; ++i) lengths.push_back(c_.between(0, 3));
    counts(s).insert(counts(s).end(), lengths.begin(), lengths.end());
    append_places(s, where, in_bytes);
    const Off unit = in_bytes ? 1 : child.map.extent();
    return finish(s, [&](Builder& b) {
      for (size_t i = 0; i < where.size(); ++i) b.add(where[i] * unit, lengths[i], child.map);
    });
  }

  Sample indexed_block(int depth) {
    const Sample child = type(depth - 1);
    const bool in_bytes = c_.coin();
    Sample s = over(in_bytes ? Combiner::hindexed_block : Combiner::indexed_block, child);
    const int64_t block = c_.between(0, 2), n = count_for(child.map, block);
    const auto where = displacements(n, in_bytes);
    counts(s) = {n, block};
    append_places(s, where, in_bytes);
    const Off unit = in_bytes ? 1 : child.map.extent();
    return finish(s, [&](Builder& b) {
      for (const int64_t d : where) b.add(d * unit, block, child.map);
    });
  }

  static void append_places(Sample& s, const std::vector<int64_t>& where, bool in_bytes) {
    auto& list = in_bytes ? places(s) : counts(s);
    list.insert(list.end(), where.begin(), where.end());
  }

  Sample structure(int depth) {
    Sample s;
    s.description.combiner = Combiner::structure;
    s.description.large_count = c_.coin();
    const int64_t n = c_.between(0, 3);
    const auto where = displacements(n, true);
    std::vector<Sample> children;
    std::vector<int64_t> lengths;
    for (int64_t i = 0; i < n; ++i) {
      children.push_back(type(depth - 1));
      lengths.push_back(count_for(children.back().map));
      s.description.children.push_back(*decode(children.back().description));
    }
    counts(s) = {n};
    counts(s).insert(counts(s).end(), lengths.begin(), lengths.end());
    append_places(s, where, true);
    return finish(s, [&](Builder& b) {
      for (size_t i = 0; i < where.size(); ++i) b.add(where[i], lengths[i], children[i].map);
    });
  }

  Sample resized(int depth) {
    const Sample child = type(depth - 1);
    Sample s = over(Combiner::resized, child);
    s.map = child.map;
    s.map.lb = c_.between(-20, 20);
    // Often just large enough to tile, as file views are.
    const auto top = std::max_element(child.map.bytes.begin(), child.map.bytes.end());
    const Off reach = top == child.map.bytes.end() ? 0 : *top + 1;
    const Off extent = c_.coin() ? reach + c_.between(0, 16) : c_.between(-40, 80);
    s.map.ub = s.map.lb + extent;
    places(s) = {s.map.lb, extent};
    return s;
  }

  template <class Fill>
  Sample finish(Sample& s, Fill fill) {
    Builder b;
    fill(b);
    s.map = std::move(b).done();
    if (c_.byte() % 8 == 0) {  // a library that pads
      s.map.ub += 3;
      s.description.reported_bounds = {s.map.lb, s.map.extent()};
    }
    return std::move(s);
  }

  struct Dimension {
    int64_t size = 1, a = 0, b = 0,
            c = 1;  // subarray: subsize, start; darray: dist, arg, processes
  };

  // Calls visit(linear index) for the elements of the whole array, in storage order, of which
  // owns(dimension, coordinate) holds in every dimension.
  template <class Owns, class Visit>
  static void each_owned(const std::vector<Dimension>& dims, bool fortran, Owns owns, Visit visit) {
    int64_t total = 1;
    for (const Dimension& d : dims) total *= d.size;
    for (int64_t linear = 0; linear < total; ++linear) {
      int64_t rest = linear;
      bool mine = true;
      for (size_t k = 0; k < dims.size(); ++k) {
        const size_t d = fortran ? k : dims.size() - 1 - k;
        mine = mine && owns(d, rest % dims[d].size);
        rest /= dims[d].size;
      }
      if (mine) visit(linear);
    }
  }

  template <class Owns>
  Typemap array_map(const Typemap& child, const std::vector<Dimension>& dims, bool fortran,
                    Owns owns) {
    Builder b;
    each_owned(dims, fortran, owns, [&](int64_t i) { b.add(i * child.extent(), 1, child); });
    Typemap map = std::move(b).done();
    map.lb = 0;
    map.ub = child.extent();
    for (const Dimension& d : dims) map.ub *= d.size;
    return map;
  }

  std::vector<Dimension> dimensions(const Typemap& child) {
    const int64_t largest = child.bytes.size() > 40 ? 2 : 5;
    std::vector<Dimension> dims(size_t(c_.between(1, 3)));
    for (Dimension& d : dims) d.size = c_.between(1, largest);
    return dims;
  }

  template <class T>
  static void append(std::vector<T>& list, const std::vector<Dimension>& dims,
                     int64_t Dimension::*member) {
    for (const Dimension& d : dims) list.push_back(T(d.*member));
  }

  Sample subarray(int depth) {
    const Sample child = type(depth - 1);
    Sample s = over(Combiner::subarray, child);
    auto dims = dimensions(child.map);
    for (Dimension& d : dims) {
      d.a = c_.between(1, d.size);
      d.b = c_.between(0, d.size - d.a);
    }
    const bool fortran = c_.coin();
    s.description.integers = {int32_t(dims.size())};
    for (const auto member : {&Dimension::size, &Dimension::a, &Dimension::b}) {
      append(counts(s), dims, member);
    }
    s.description.integers.push_back(fortran ? kOrderFortran : kOrderC);
    s.map = array_map(child.map, dims, fortran, [&](size_t d, int64_t i) {
      return dims[d].b <= i && i < dims[d].b + dims[d].a;
    });
    return s;
  }

  static bool owns(const Dimension& d, int64_t at, int64_t i) {
    if (d.a == kDistributeNone) return true;
    if (d.a == kDistributeCyclic) {
      const int64_t block = d.b == kDistributeDefaultArg ? 1 : d.b;
      return i / block % d.c == at;
    }
    const int64_t block = d.b == kDistributeDefaultArg ? (d.size + d.c - 1) / d.c : d.b;
    return i / block == at;
  }

  Sample darray(int depth) {
    const Sample child = type(depth - 1);
    Sample s = over(Combiner::darray, child);
    auto dims = dimensions(child.map);
    int64_t job = 1;
    for (Dimension& d : dims) {
      d.a = c_.between(0, 2);
      d.c = d.a == kDistributeNone ? 1 : c_.between(1, 3);
      const int64_t least = d.a == kDistributeBlock ? (d.size + d.c - 1) / d.c : 1;
      d.b = c_.coin() ? kDistributeDefaultArg : least + c_.between(0, 1);
      job *= d.c;
    }
    const int64_t rank = c_.between(0, job - 1);
    std::vector<int64_t> at(dims.size());
    for (size_t k = dims.size(), rest = size_t(rank); k-- > 0; rest /= size_t(dims[k].c)) {
      at[k] = int64_t(rest) % dims[k].c;
    }
    const bool fortran = c_.coin();
    s.description.integers = {int32_t(job), int32_t(rank), int32_t(dims.size())};
    append(counts(s), dims, &Dimension::size);
    for (const auto member : {&Dimension::a, &Dimension::b, &Dimension::c}) {
      append(s.description.integers, dims, member);
    }
    s.description.integers.push_back(fortran ? kOrderFortran : kOrderC);
    s.map = array_map(child.map, dims, fortran,
                      [&](size_t d, int64_t i) { return owns(dims[d], at[d], i); });
    return s;
  }

  Choices& c_;
};

// A random description whose parts need not fit together.
inline TypeDescription nonsense(Choices& c) {
  TypeDescription d;
  d.combiner = Combiner(c.byte() % (kCombiners + 1));
  d.large_count = c.coin();
  const auto fill = [&c](auto& list) {
    using Number = typename std::decay_t<decltype(list)>::value_type;
    list.resize(c.byte() % 12);
    for (Number& x : list) x = Number(c.wild());
    if (!list.empty() && c.coin()) list[0] = Number(c.between(0, 4));
  };
  fill(d.integers);
  if (d.large_count) fill(d.large_counts);
  if (c.coin()) fill(d.addresses);
  for (int64_t i = c.between(0, 2); i > 0; --i) {
    auto child = LoopTree::resized(LoopTree::bytes(c.between(0, 9)), c.wild(), c.wild());
    if (child) d.children.push_back(*child);
  }
  for (int64_t i = c.between(0, 2); i > 0; --i) d.named_parts.push_back({c.wild(), c.wild()});
  d.named_extent = c.wild();
  return d;
}

}  // namespace penstock::layout::oracle
