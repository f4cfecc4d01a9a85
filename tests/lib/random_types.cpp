// One constructor per function; what differs between file and memory is the order of the blocks.
#include "random_types.hpp"

#include <algorithm>
#include <cstddef>

namespace suite {
namespace {

struct Context {
  Random& random;
  Where where;
  int64_t unit;  // gaps are multiples of it
};

// Block lengths (some zero) and disjoint displacements in units of old's extent, shuffled for
// memory.
struct Blocks {
  std::vector<int> lengths, at;
};

void shuffle_pairs(Random& random, Blocks& b) {
  for (size_t i = b.at.size(); i > 1; --i) {
    const size_t j = size_t(random.between(0, int64_t(i) - 1));
    std::swap(b.at[i - 1], b.at[j]);
    std::swap(b.lengths[i - 1], b.lengths[j]);
  }
}

Blocks random_blocks(Context& c, int same_length) {
  Blocks b;
  const int n = int(c.random.between(1, 5));
  int at = int(c.random.between(0, 3));
  for (int i = 0; i < n; ++i) {
    int length = same_length ? same_length : int(c.random.between(0, 3));
    if (i == 0) length = std::max(length, 1);
    b.lengths.push_back(length);
    b.at.push_back(at);
    at += length + int(c.random.between(0, 3));
  }
  if (c.where == Where::memory && c.random.chance(60)) shuffle_pairs(c.random, b);
  return b;
}

std::vector<MPI_Aint> in_bytes(const std::vector<int>& at, int64_t extent, int64_t shift) {
  std::vector<MPI_Aint> bytes;
  for (int a : at) bytes.push_back(MPI_Aint(a * extent + shift));
  return bytes;
}

int64_t random_shift(Context& c) {
  const int64_t low = c.where == Where::memory ? -3 : 0;
  return c.random.between(low, 4) * c.unit;
}

Type random_vector(Context& c, const Type& old) {
  const bool backwards = c.where == Where::memory && c.random.chance(40);
  // Open MPI 4.1 reports wrong bounds for a stride of exactly minus one block of one element.
  const int block = int(c.random.between(1, 3)), gap = int(c.random.between(backwards ? 1 : 0, 4));
  return vector(int(c.random.between(1, 5)), block, (block + gap) * (backwards ? -1 : 1), old);
}

Type random_hvector(Context& c, const Type& old) {
  const int block = int(c.random.between(1, 3));
  const bool backwards = c.where == Where::memory && c.random.chance(40);
  const int64_t gap = c.random.between(backwards ? 1 : 0, 5) * c.unit;
  const int64_t stride = block * old.extent() + gap;
  return hvector(int(c.random.between(1, 5)), block, backwards ? -stride : stride, old);
}

Type random_indexed(Context& c, const Type& old) {
  const int same = int(c.random.between(1, 3));
  switch (c.random.between(0, 3)) {
    case 0: {
      const Blocks b = random_blocks(c, 0);
      return indexed(b.lengths, b.at, old);
    }
    case 1: {
      const Blocks b = random_blocks(c, 0);
      return hindexed(b.lengths, in_bytes(b.at, old.extent(), random_shift(c)), old);
    }
    case 2:
      return indexed_block(same, random_blocks(c, same).at, old);
    default: {
      const Blocks b = random_blocks(c, same);
      return hindexed_block(same, in_bytes(b.at, old.extent(), random_shift(c)), old);
    }
  }
}

// Members of different types, each behind the one before; for memory the list is shuffled.
Type random_struct(Context& c, const Type& a, const Type& b) {
  std::vector<int> lengths;
  std::vector<MPI_Aint> at;
  std::vector<Type> members;
  int64_t next = random_shift(c);
  const int n = int(c.random.between(1, 4));
  for (int i = 0; i < n; ++i) {
    const Type& member = c.random.chance(50) ? a : b;
    const int length = i == 0 ? 1 : int(c.random.between(0, 2));
    // The member's first byte may lie before its origin (negative strides).
    const int64_t origin = next - std::min(member.lb, member.lowest());
    lengths.push_back(length);
    at.push_back(MPI_Aint(origin));
    members.push_back(member);
    next = origin + member.lb + length * member.extent() + c.random.between(0, 3) * c.unit;
  }
  if (c.where == Where::memory && n > 1 && c.random.chance(50)) {
    std::swap(lengths.front(), lengths.back());
    std::swap(at.front(), at.back());
    std::swap(members.front(), members.back());
  }
  return structure(lengths, at, members);
}

Type random_subarray(Context& c, const Type& old) {
  std::vector<int> sizes, subsizes, starts;
  const int dimensions = int(c.random.between(1, 3));
  for (int d = 0; d < dimensions; ++d) {
    sizes.push_back(int(c.random.between(1, 5)));
    subsizes.push_back(int(c.random.between(1, sizes.back())));
    starts.push_back(int(c.random.between(0, sizes.back() - subsizes.back())));
  }
  return subarray(sizes, subsizes, starts, c.random.chance(50) ? MPI_ORDER_C : MPI_ORDER_FORTRAN,
                  old);
}

Type random_darray(Context& c, const Type& old) {
  std::vector<int> sizes, distribs, dargs, psizes;
  int ranks = 1;
  const int dimensions = int(c.random.between(1, 3));
  for (int d = 0; d < dimensions; ++d) {
    const int p = int(c.random.between(1, 2));
    const int how = int(c.random.between(0, p == 1 ? 3 : 2));
    sizes.push_back(int(c.random.between(2 * p, 6)));
    psizes.push_back(p);
    distribs.push_back(how == 0   ? MPI_DISTRIBUTE_BLOCK
                       : how == 3 ? MPI_DISTRIBUTE_NONE
                                  : MPI_DISTRIBUTE_CYCLIC);
    dargs.push_back(how == 2 ? 2 : MPI_DISTRIBUTE_DFLT_DARG);
    ranks *= p;
  }
  const int rank = int(c.random.between(0, ranks - 1));
  return darray(ranks, rank, sizes, distribs, dargs, psizes,
                c.random.chance(50) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, old);
}

int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

Type random_resized(Context& c, const Type& old) {
  const int64_t need = round_up(old.highest() - old.lowest(), c.unit);
  const int64_t lb = old.lowest() - c.random.between(0, 3) * c.unit;
  return resized(old, lb, need + (old.lowest() - lb) + c.random.between(0, 4) * c.unit);
}

// Copies one extent apart must not overlap, whatever the bounds came out as.
Type make_tileable(Context& c, Type t) {
  const int64_t span = t.highest() - t.lowest();
  if (t.extent() >= span && t.extent() % c.unit == 0) return t;
  return resized(t, t.lowest(), round_up(std::max(span, t.extent()), c.unit));
}

Type random_constructor(Context& c, const Type& a, const Type& b) {
  switch (c.random.between(0, 9)) {
    case 0:
      return contiguous(int(c.random.between(1, 6)), a);
    case 1:
    case 2:
      return random_vector(c, a);
    case 3:
      return random_hvector(c, a);
    case 4:
    case 5:
      return random_indexed(c, a);
    case 6:
      return random_struct(c, a, b);
    case 7:
      return random_subarray(c, a);
    case 8:
      return random_darray(c, a);
    default:
      return c.random.chance(70) ? random_resized(c, a) : duplicate(a);
  }
}

// Arrays are laid out from their origin, so a member with another lower bound would reach outside.
bool sits_at_its_origin(const Type& t) { return t.lb == 0 && t.lowest() >= 0; }

bool fits(const Type& t, Where where, int64_t leaf_bytes, int64_t leaves) {
  if (t.size() == 0 || t.size() > leaf_bytes * leaves) return false;
  if (t.extent() > 64 * leaf_bytes * leaves) return false;
  return where == Where::memory || (t.ascending() && t.lowest() >= 0);
}

}  // namespace

Type random_type(Random& random, Where where, const Type& base, int depth, int64_t leaves) {
  Context c{random, where, base.extent()};
  Type made = base;
  for (int level = 0; level < depth; ++level) {
    const Type& second = random.chance(50) ? made : base;
    Type next = make_tileable(c, random_constructor(c, made, second));
    if (fits(next, where, base.size(), leaves) && (level + 1 == depth || sits_at_its_origin(next)))
      made = std::move(next);
  }
  return made;
}

Type random_basic(Random& random) {
  switch (random.between(0, 4)) {
    case 0:
      return predefined(MPI_INT, "INT");
    case 1:
      return predefined(MPI_DOUBLE, "DOUBLE");
    case 2:
      return predefined(MPI_SHORT, "SHORT");
    default:
      return predefined(MPI_BYTE, "BYTE");
  }
}

Type random_pair(Random& random) {
  struct DoubleInt {
    double a;
    int b;
  };
  struct LongInt {
    long a;
    int b;
  };
  struct ShortInt {
    short a;
    int b;
  };
  switch (random.between(0, 3)) {
    case 0:
      return pair(MPI_DOUBLE_INT, "DOUBLE_INT", 8, offsetof(DoubleInt, b), 4, sizeof(DoubleInt));
    case 1:
      return pair(MPI_LONG_INT, "LONG_INT", 8, offsetof(LongInt, b), 4, sizeof(LongInt));
    case 2:
      return pair(MPI_SHORT_INT, "SHORT_INT", 2, offsetof(ShortInt, b), 4, sizeof(ShortInt));
    default:
      return pair(MPI_FLOAT_INT, "FLOAT_INT", 4, 4, 4, 8);
  }
}

}  // namespace suite
