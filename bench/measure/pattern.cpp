// The patterns: one function each, from the amount to a worker's part.
#include "pattern.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/hash.hpp"
#include "base/units.hpp"

namespace penstock::measure {
namespace {

constexpr std::array kPatterns = {
    PatternInfo{"contiguous", "",
                "every worker one block of the file, one part of it per iteration",
                PatternKind::contiguous},
    PatternInfo{"interleaved", ":BYTES", "workers take turns with blocks of BYTES",
                PatternKind::interleaved},
    PatternInfo{"slabs3d", "", "a 3-D array of doubles per iteration, cut in its slowest dimension",
                PatternKind::slabs3d},
    PatternInfo{"cubes3d", "",
                "a 3-D array of doubles per iteration, cut into boxes, the fastest dimension first",
                PatternKind::cubes3d},
    PatternInfo{"btio", "",
                "NPB BT-IO: cells of 5 doubles in diagonal multi-partitioning; a square number of "
                "workers",
                PatternKind::btio},
    PatternInfo{"irregular", "[:MEAN]",
                "short runs of MEAN bytes (200) on average at random places, as of an unstructured "
                "mesh",
                PatternKind::irregular},
    PatternInfo{"particles", "",
                "snapshots of nine variables, one after the other; every worker has another number "
                "of particles",
                PatternKind::particles},
};

constexpr int64_t kDefaultMeanBytes = 200;
constexpr int64_t kWord = 8;

tl::unexpected<Error> refuse(std::string detail) {
  return fail(ErrorClass::argument, "pattern", std::move(detail));
}

const PatternInfo& info_of(PatternKind kind) { return kPatterns[size_t(kind)]; }

std::string names() {
  std::string text;
  for (const PatternInfo& p : kPatterns)
    text += (text.empty() ? "" : ", ") + std::string(p.name) + std::string(p.argument);
  return text;
}

// The sequence of a seed, the same on every machine (std::uniform_int_distribution is not).
class Draw {
 public:
  explicit Draw(uint64_t seed) : state_(mix(0x70656e73746f636bu, seed)) {}
  uint64_t next() noexcept { return state_ = mix(state_, ++count_); }
  int64_t below(int64_t n) noexcept { return int64_t(next() % uint64_t(n)); }

 private:
  Hash state_;
  uint64_t count_ = 0;
};

int64_t cube_root(int64_t n) { return std::max<int64_t>(1, int64_t(std::cbrt(double(n)) + 1e-9)); }

// `workers` as three factors, as equal as can be, descending: as MPI_Dims_create.
std::array<int64_t, 3> three_factors(int64_t workers) {
  std::array<int64_t, 3> best{workers, 1, 1};
  for (int64_t c = 1; c * c * c <= workers; ++c) {
    if (workers % c != 0) continue;
    for (int64_t b = c; b * b <= workers / c; ++b)
      if (workers / c % b == 0 && workers / c / b <= best[0]) best = {workers / c / b, b, c};
  }
  return best;
}

// --- The patterns ---

Result<Part> contiguous(const PatternChoice&, int worker, const Amount& a) {
  Part part;
  part.bytes_per_iteration = a.bufsize_bytes;
  part.displacement_bytes = worker * a.bufsize_bytes * a.iterations;
  part.file_bytes_per_iteration = a.workers * a.bufsize_bytes;
  return part;
}

Result<Part> interleaved(const PatternChoice& choice, int worker, const Amount& a) {
  const int64_t block = choice.block_bytes;
  Part part;
  part.tile.blocks = {{0}, {block}};
  part.tile.extent_bytes = block * a.workers;
  part.displacement_bytes = block * worker;
  part.bytes_per_iteration = std::max<int64_t>(1, a.bufsize_bytes / block) * block;
  part.file_bytes_per_iteration = a.workers * part.bytes_per_iteration;
  return part;
}

// One array per iteration, cut `cuts[d]` times in dimension d, every worker `local[d]` wide.
Part box_part(const std::array<int64_t, 3>& cuts, const std::array<int64_t, 3>& local, int worker) {
  Box box;
  int64_t rest = worker;
  for (int d = 2; d >= 0; --d) {
    box.sizes[d] = cuts[d] * local[d];
    box.subsizes[d] = local[d];
    box.starts[d] = rest % cuts[d] * local[d];
    rest /= cuts[d];
  }
  Part part;
  part.etype_bytes = kWord;
  part.bytes_per_iteration = local[0] * local[1] * local[2] * kWord;
  part.file_bytes_per_iteration = part.bytes_per_iteration * cuts[0] * cuts[1] * cuts[2];
  part.tile.extent_bytes = part.file_bytes_per_iteration;
  part.tile.boxes = {box};
  return part;
}

Result<Part> slabs3d(const PatternChoice&, int worker, const Amount& a) {
  const int64_t n = cube_root(a.workers * a.bufsize_bytes / kWord);
  const int64_t thickness = std::max<int64_t>(1, a.bufsize_bytes / (n * n * kWord));
  return box_part({a.workers, 1, 1}, {thickness, n, n}, worker);
}

Result<Part> cubes3d(const PatternChoice&, int worker, const Amount& a) {
  const auto [most, middle, least] = three_factors(a.workers);
  const std::array<int64_t, 3> cuts = {least, middle, most};  // rows of workers interleave
  const int64_t n = cube_root(a.workers * a.bufsize_bytes / kWord);
  std::array<int64_t, 3> local;
  for (int d = 0; d < 3; ++d) local[d] = std::max<int64_t>(1, n / cuts[d]);
  return box_part(cuts, local, worker);
}

// Worker (i, j) of q x q owns the cells (i + c, j - c, c) mod q of the q x q x q, so that each has
// a cell on every plane of every direction.
Result<Part> btio(const PatternChoice&, int worker, const Amount& a) {
  const auto q = int64_t(std::lround(std::sqrt(double(a.workers))));
  if (q * q != a.workers)
    return refuse("btio needs a square number of workers for a file (1, 4, 9, 16, ...), got " +
                  std::to_string(a.workers));
  constexpr int64_t kCell = 5 * kWord;
  const int64_t edge = cube_root(a.bufsize_bytes / (q * kCell)), n = q * edge;
  const int64_t i = worker % q, j = worker / q;
  Part part;
  part.etype_bytes = kWord;
  for (int64_t c = 0; c < q; ++c) {
    const std::array<int64_t, 3> at = {c, (j - c + q) % q, (i + c) % q};
    Box box{.sizes = {n, n, n}, .subsizes = {edge, edge, edge}, .element_bytes = kCell};
    for (int d = 0; d < 3; ++d) box.starts[d] = at[d] * edge;
    part.tile.boxes.push_back(box);
  }
  part.bytes_per_iteration = q * edge * edge * edge * kCell;
  part.file_bytes_per_iteration = n * n * n * kCell;
  part.tile.extent_bytes = part.file_bytes_per_iteration;
  return part;
}

// Lengths of whole words, uniform from one word to twice the mean, that add up to `bytes`.
std::vector<int64_t> draw_runs(Draw& draw, int64_t mean_bytes, int64_t bytes) {
  const int64_t most = std::max<int64_t>(1, 2 * (mean_bytes / kWord) - 1);
  std::vector<int64_t> lengths;
  for (int64_t left = bytes; left > 0; left -= lengths.back())
    lengths.push_back(std::min(left, kWord * (1 + draw.below(most))));
  return lengths;
}

// The runs of all workers in one tile are shuffled as a deck of cards, so that there are no holes.
// A tile repeats after at most kMostRuns runs of a worker: descriptions stay bounded.
Result<Part> irregular(const PatternChoice& choice, int worker, const Amount& a) {
  constexpr int64_t kMostRuns = 16384;
  const int64_t share =
      std::max(kWord, std::min(a.bufsize_bytes, kMostRuns * choice.block_bytes) / kWord * kWord);
  Part part;
  part.bytes_per_iteration = std::max<int64_t>(1, a.bufsize_bytes / share) * share;
  part.file_bytes_per_iteration = part.bytes_per_iteration * a.workers;
  part.tile.extent_bytes = share * a.workers;
  std::vector<std::pair<int, int64_t>> deck;
  for (int w = 0; w < a.workers; ++w) {
    Draw draw(mix(a.seed, uint64_t(w)));
    for (const int64_t bytes : draw_runs(draw, choice.block_bytes, share))
      deck.emplace_back(w, bytes);
  }
  Draw shuffle(a.seed);
  for (size_t n = deck.size(); n > 1; --n)
    std::swap(deck[n - 1], deck[size_t(shuffle.below(int64_t(n)))]);
  Off at = 0;
  Blocks& mine = part.tile.blocks;
  for (const auto& [owner, bytes] : deck) {
    if (owner == worker) {
      mine.displacements.push_back(at);
      mine.lengths.push_back(bytes);
    }
    at += bytes;
  }
  return part;
}

// Counts around `mean`, a quarter up or down, which add up to workers * mean: what one worker of a
// pair has more, the other has less.
int64_t particles_of(int worker, int64_t mean, const Amount& a) {
  const int pair = worker / 2;
  if (worker % 2 == 0 && worker + 1 == a.workers) return mean;
  const int64_t most = mean / 4;
  const int64_t shift = Draw(mix(a.seed, uint64_t(pair))).below(2 * most + 1) - most;
  return worker % 2 == 0 ? mean + shift : mean - shift;
}

// Positions, velocities and a potential in 4 bytes each, an identity in 8 and a mask in 2, as the
// cosmology code HACC dumps them.
Result<Part> particles(const PatternChoice&, int worker, const Amount& a) {
  constexpr std::array<int64_t, 9> kVariables = {4, 4, 4, 4, 4, 4, 4, 8, 2};
  constexpr int64_t kParticle = 38;
  const int64_t mean = std::max<int64_t>(1, a.bufsize_bytes / kParticle);
  int64_t before = 0, all = 0;
  for (int w = 0; w < a.workers; ++w) {
    const int64_t n = particles_of(w, mean, a);
    before += w < worker ? n : 0;
    all += n;
  }
  const int64_t mine = particles_of(worker, mean, a);
  Part part;
  Off variable = 0;
  for (const int64_t bytes : kVariables) {
    part.tile.blocks.displacements.push_back(variable + before * bytes);
    part.tile.blocks.lengths.push_back(mine * bytes);
    variable += all * bytes;
  }
  part.bytes_per_iteration = mine * kParticle;
  part.file_bytes_per_iteration = all * kParticle;
  part.tile.extent_bytes = part.file_bytes_per_iteration;
  return part;
}

using Make = Result<Part> (*)(const PatternChoice&, int, const Amount&);
constexpr std::array<Make, kPatterns.size()> kMakers = {
    &contiguous, &interleaved, &slabs3d, &cubes3d, &btio, &irregular, &particles};

// --- A tile as a loop tree ---

using layout::LoopTree;

// Rows of the fastest dimension, loops around them.
Result<LoopTree::Field> tree_of(const Box& box) {
  const int64_t row = box.sizes[2] * box.element_bytes, plane = row * box.sizes[1];
  const Off origin = box.displacement_bytes + box.starts[0] * plane + box.starts[1] * row +
                     box.starts[2] * box.element_bytes;
  auto rows = LoopTree::strided(box.subsizes[1], 1, row,
                                LoopTree::bytes(box.subsizes[2] * box.element_bytes));
  if (!rows) return tl::unexpected(rows.error());
  auto planes = LoopTree::strided(box.subsizes[0], 1, plane, *rows);
  if (!planes) return tl::unexpected(planes.error());
  return LoopTree::Field{origin, 1, *std::move(planes)};
}

Result<LoopTree> tree_of(const Tile& tile) {
  if (tile.plain()) return LoopTree::bytes(1);
  Result<LoopTree> body;
  if (tile.boxes.empty()) {
    std::vector<LoopTree::Block> blocks;
    for (size_t i = 0; i < tile.blocks.lengths.size(); ++i)
      blocks.push_back({tile.blocks.displacements[i], tile.blocks.lengths[i]});
    body = LoopTree::indexed(blocks, LoopTree::bytes(1));
  } else {
    std::vector<LoopTree::Field> fields;
    for (const Box& box : tile.boxes) {
      auto field = tree_of(box);
      if (!field) return tl::unexpected(field.error());
      fields.push_back(*std::move(field));
    }
    body = LoopTree::structure(fields);
  }
  if (!body) return body;
  return LoopTree::resized(*body, 0, tile.extent_bytes);
}

// Bytes of one file, in 128 bits.
Result<void> check_size(const Part& part, const Amount& a) {
  const __int128 all = __int128(part.file_bytes_per_iteration) * a.iterations;
  if (all <= INT64_MAX) return {};
  return refuse("iters x bufsize x workers must fit into 2^63 bytes, got " +
                std::to_string(a.iterations) + " x " + std::to_string(a.bufsize_bytes) + " x " +
                std::to_string(a.workers));
}

}  // namespace

std::span<const PatternInfo> patterns() { return kPatterns; }

Result<PatternChoice> parse_pattern(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const auto found = std::ranges::find(kPatterns, name, &PatternInfo::name);
  if (found == kPatterns.end())
    return refuse("--pattern must be one of " + names() + ", got \"" + std::string(text) + "\"");
  PatternChoice choice{found->kind, 0};
  if (colon == std::string_view::npos) {
    if (found->kind == PatternKind::interleaved)
      return refuse("interleaved needs the bytes of a block, such as interleaved:47008");
    if (found->kind == PatternKind::irregular) choice.block_bytes = kDefaultMeanBytes;
    return choice;
  }
  if (found->argument.empty())
    return refuse(std::string(name) + " takes no argument, got \"" + std::string(text) + "\"");
  const auto bytes = parse_size(text.substr(colon + 1), "pattern " + std::string(name));
  if (!bytes) return tl::unexpected(bytes.error());
  const int64_t least = found->kind == PatternKind::irregular ? kWord : 1;
  if (*bytes < least)
    return refuse(std::string(name) + " needs at least " + std::to_string(least) +
                  " bytes, got \"" + std::string(text) + "\"");
  choice.block_bytes = *bytes;
  return choice;
}

std::string to_string(const PatternChoice& choice) {
  const PatternInfo& info = info_of(choice.kind);
  std::string text(info.name);
  return info.argument.empty() ? text : text + ":" + std::to_string(choice.block_bytes);
}

Result<Part> make_part(const PatternChoice& choice, int worker, const Amount& amount) {
  // Nothing a pattern multiplies overflows below this.
  constexpr int64_t kMostBytes = int64_t{1} << 62;
  if ((__int128(amount.bufsize_bytes) + choice.block_bytes) * amount.workers * amount.iterations >
      kMostBytes)
    return refuse("iters x bufsize x workers must be at most 2^62 bytes, got " +
                  std::to_string(amount.iterations) + " x " + std::to_string(amount.bufsize_bytes) +
                  " x " + std::to_string(amount.workers));
  auto part = kMakers[size_t(choice.kind)](choice, worker, amount);
  if (!part) return part;
  if (auto ok = check_size(*part, amount); !ok) return tl::unexpected(ok.error());
  return part;
}

Result<layout::FileView> view_of(const Part& part) {
  auto tree = tree_of(part.tile);
  if (!tree) return tl::unexpected(tree.error());
  return layout::FileView::make(part.displacement_bytes, part.etype_bytes, *std::move(tree));
}

}  // namespace penstock::measure
