// Drawing cases, and expanding them byte by byte.
#include "view_case.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace suite {
namespace {

// Labels of the independent streams of random numbers.
enum : uint64_t { kCase = 1, kShared = 2, kRank = 3, kShare = 4, kBase = 5, kMeans = 6, kMesh = 7 };

constexpr const char* kFamilies[] = {"plain",     "interleaved", "rows",   "tile",
                                     "darray",    "random",      "random", "different",
                                     "different", "everybody",   "shifted"};

Type base_type(const Case& c, int phase, Where where) {
  Random random{c.seed, uint64_t(c.number), uint64_t(phase), kBase};
  if (c.pairs == Pairs::in_memory && where == Where::file) return predefined(MPI_BYTE, "BYTE");
  return c.pairs != Pairs::none ? random_pair(random) : random_basic(random);
}

Type random_etype(Random& random, const Type& base) {
  if (random.chance(60)) return base;
  return random.chance(50) ? contiguous(int(random.between(1, 4)), base)
                           : resized(base, 0, base.extent() * random.between(1, 2));
}

// Rank r has blocks r, r + ranks, r + 2 ranks, ... : the classical interleaving.
View interleaved(const Case& c, Random& shared, const Type& etype, int rank) {
  const int64_t block = c.large ? shared.between(500, 3000) : shared.between(1, 40);
  const Type piece = contiguous(int(block), etype);
  return {shared.between(0, 3) * 8 + rank * piece.extent(), etype,
          resized(piece, 0, piece.extent() * c.ranks)};
}

// Rows of a matrix by a vector type: disjoint bytes whose bounds overlap.
View rows(const Case& c, Random& shared, const Type& etype, int rank) {
  const int n = int(shared.between(1, 6)), width = int(shared.between(1, 8));
  const Type strided = vector(n, width, width * c.ranks, etype);
  const int64_t tile = int64_t(n) * width * c.ranks * etype.extent();
  return {rank * width * etype.extent(), etype, resized(strided, 0, tile)};
}

std::array<int, 2> grid(int ranks) {
  int a = 1;
  for (int d = 1; d * d <= ranks; ++d) {
    if (ranks % d == 0) a = d;
  }
  return {a, ranks / a};
}

View tile(const Case& c, Random& shared, const Type& etype, int rank) {
  const auto [p, q] = grid(c.ranks);
  const int factor = c.large ? 12 : 1;
  const std::vector<int> part = {int(shared.between(1, 3)), int(shared.between(1, 5)) * factor,
                                 int(shared.between(1, 6)) * factor};
  const std::vector<int> sizes = {part[0], part[1] * p, part[2] * q};
  const std::vector<int> starts = {0, part[1] * (rank / q), part[2] * (rank % q)};
  const int order = shared.chance(50) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
  return {shared.between(0, 2) * 64, etype, subarray(sizes, part, starts, order, etype)};
}

View distributed(const Case& c, Random& shared, const Type& etype, int rank) {
  const auto [p, q] = grid(c.ranks);
  const std::vector<int> psizes = {p, q, 1};
  std::vector<int> sizes, distribs, dargs;
  for (int d = 0; d < 3; ++d) {
    const bool block = shared.chance(50);
    sizes.push_back(int(shared.between(1, 4)) * psizes[size_t(d)] * 2);
    distribs.push_back(d == 2  ? MPI_DISTRIBUTE_NONE
                       : block ? MPI_DISTRIBUTE_BLOCK
                               : MPI_DISTRIBUTE_CYCLIC);
    dargs.push_back(d != 2 && !block && shared.chance(50) ? 2 : MPI_DISTRIBUTE_DFLT_DARG);
  }
  const int order = shared.chance(50) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
  return {0, etype, darray(c.ranks, rank, sizes, distribs, dargs, psizes, order, etype)};
}

// Short runs of cells, each of some rank: an unstructured mesh. No two ranks have the same cell.
View mesh(const Case& c, Random& shared, const Type& etype, int rank) {
  const int64_t blocks = c.large ? shared.between(12'000, 20'000) : shared.between(3, 120);
  std::vector<int> lengths, at;
  int64_t cell = 0;
  for (int64_t i = 0; i < blocks * c.ranks; ++i) {
    const int64_t length = shared.between(1, 4), owner = shared.between(0, c.ranks);
    // The first ones are dealt in turn, so that nobody has none; what is nobody's is a hole.
    if (i < c.ranks ? i == rank : owner == rank) {
      lengths.push_back(int(length));
      at.push_back(int(cell));
    }
    cell += length;
  }
  const Type mine = indexed(lengths, at, etype);
  return {shared.between(0, 3) * 8, etype, resized(mine, 0, cell * etype.extent())};
}

View random_view(const Case& c, Random& random, const Type& etype) {
  const int depth = int(random.between(1, 4));
  return {random.between(0, 300), etype,
          random_type(random, Where::file, etype, depth, c.large ? 4000 : 300)};
}

// Enough copies of the memory type for whole etypes, near the number of bytes wanted.
int whole_count(const Type& memory, const Type& etype, int64_t wanted_bytes) {
  const int64_t step = etype.size() / std::gcd(memory.size(), etype.size());
  return int(std::max<int64_t>(1, wanted_bytes / (memory.size() * step)) * step);
}

int64_t wanted_bytes(const Case& c, Random& random) {
  if (c.large) return random.between(2 << 20, 5 << 20) / c.ranks;
  return random.chance(15) ? random.between(20000, 60000) : random.between(1, 3000);
}

Phase draw_phase(const Case& c, Random& random, int number) {
  Phase p;
  p.family = kFamilies[random.between(0, int64_t(std::size(kFamilies)) - 1)];
  // Of a stream of its own, so that all other cases are what they were when their exceptions were
  // written down (oracle-exceptions.md).
  Random mesh{c.seed, uint64_t(c.number), uint64_t(number), kMesh};
  if (mesh.chance(12)) p.family = "mesh";
  p.version = mix(c.seed ^ uint64_t(c.number * 64 + number));
  p.reopen = random.chance(30);
  p.read_back = random.chance(50);
  const int calls = c.large ? 1 : int(random.between(1, 3));
  for (int i = 0; i < calls; ++i) {
    const bool together = random.chance(70);
    p.ops.push_back(together ? random.one_of({Op::write_all, Op::write_at_all})
                             : random.one_of({Op::write, Op::write_at}));
  }
  return p;
}

}  // namespace

const char* to_string(Op op) {
  constexpr const char* names[] = {"write", "write_all", "write_at", "write_at_all"};
  return names[int(op)];
}

Case draw_case(uint64_t seed, int number, int ranks, Pairs pairs, bool large, bool all_forms) {
  Case c{seed, number, ranks, pairs, large, all_forms, -1, {}};
  Random random{seed, uint64_t(number), uint64_t(ranks), kCase};
  if (random.chance(50)) c.background = random.between(0, 30000);
  const int phases = large ? 1 : int(random.between(1, 3));
  for (int p = 0; p < phases; ++p) c.phases.push_back(draw_phase(c, random, p));
  return c;
}

View draw_view(const Case& c, int phase, int rank) {
  const std::string& family = c.phases[size_t(phase)].family;
  Random shared{c.seed, uint64_t(c.number), uint64_t(phase), kShared};
  Random own{c.seed, uint64_t(c.number), uint64_t(phase), uint64_t(rank), kRank};
  const Type base = base_type(c, phase, Where::file);
  const bool alike = family != "different";
  const Type etype = random_etype(alike ? shared : own, base);
  if (family == "plain") return {shared.between(0, 100), etype, etype};
  if (family == "interleaved") return interleaved(c, shared, etype, rank);
  if (family == "rows") return rows(c, shared, etype, rank);
  if (family == "tile") return tile(c, shared, etype, rank);
  if (family == "darray") return distributed(c, shared, etype, rank);
  if (family == "mesh") return mesh(c, shared, etype, rank);
  View view = random_view(c, alike ? shared : own, etype);
  if (family == "shifted") view.displacement += rank * view.filetype.extent();
  return view;
}

Means draw_means(const Case& c, int phase, int op) {
  Means means;
  if (!c.all_forms) return means;
  Random random{c.seed, uint64_t(c.number), uint64_t(phase), uint64_t(op), kMeans};
  const bool collective = is_collective(c.phases[size_t(phase)].ops[size_t(op)]);
  means.form = Form(random.between(0, collective ? 2 : 1));
  means.large_count = random.chance(50);
  return means;
}

Share draw_share(const Case& c, int phase, int op, int rank, const View& view) {
  Random own{c.seed, uint64_t(c.number), uint64_t(phase), uint64_t(op), uint64_t(rank), kShare};
  Random shared{c.seed, uint64_t(c.number), uint64_t(phase), uint64_t(op), kShare};
  const bool everybody = c.phases[size_t(phase)].family == "everybody";
  const bool nobody = shared.chance(3);
  Random& random = everybody ? shared : own;
  Share share;
  const Type base = base_type(c, phase, Where::memory);
  share.memory =
      random_type(random, Where::memory, base, int(random.between(0, 3)), c.large ? 2000 : 200);
  const int64_t wanted = wanted_bytes(c, random);
  const bool empty = nobody || random.chance(12);
  share.count = empty ? 0 : whole_count(share.memory, view.etype, wanted);
  share.offset = random.between(0, 3) == 0 ? 0 : random.between(0, c.large ? 100 : 400);
  // In a view of its own stream every rank takes its turn behind the others.
  if (c.phases[size_t(phase)].family == "plain" || c.phases[size_t(phase)].family == "random")
    share.offset += rank * std::max<int64_t>(1, wanted / view.etype.size());
  return share;
}

std::vector<int64_t> file_bytes(const View& view, const Share& share) {
  std::vector<int64_t> where;
  const int64_t total = share.memory.size() * share.count;
  int64_t skip = share.offset * view.etype.size();
  int64_t tile = skip / view.filetype.size();
  skip %= view.filetype.size();
  where.reserve(size_t(total));
  for (; int64_t(where.size()) < total; ++tile) {
    for (const Run& r : view.filetype.runs) {
      for (int64_t b = 0; b < r.length && int64_t(where.size()) < total; ++b) {
        if (skip > 0) {
          --skip;
        } else {
          where.push_back(view.displacement + tile * view.filetype.extent() + r.at + b);
        }
      }
    }
  }
  return where;
}

namespace {

template <class Visit>
void each_memory_byte(const Share& share, Visit visit) {
  for (int i = 0; i < share.count; ++i) {
    for (const Run& r : share.memory.runs) {
      for (int64_t b = 0; b < r.length; ++b) visit(i * share.memory.extent() + r.at + b);
    }
  }
}

}  // namespace

std::vector<uint8_t> fill_memory(const Share& share, const std::vector<int64_t>& where,
                                 uint64_t version, size_t* origin) {
  const int64_t last = std::max(0, share.count - 1) * share.memory.extent();
  const int64_t low = std::min<int64_t>(0, share.memory.lowest());
  const int64_t high = std::max<int64_t>(1, last + share.memory.highest());
  std::vector<uint8_t> memory(size_t(high - low), 0xEE);
  *origin = size_t(-low);
  size_t k = 0;
  each_memory_byte(share,
                   [&](int64_t at) { memory[size_t(at - low)] = byte_at(version, where[k++]); });
  return memory;
}

}  // namespace suite
