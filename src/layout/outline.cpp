// Long lists in chapters: what is needed of them, the wire, and trees of which a part is known.
#include "layout/outline.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "layout/cursor.hpp"
#include "layout/list_node.hpp"
#include "layout/node.hpp"
#include "layout/normal_list.hpp"
#include "layout/wire.hpp"

namespace penstock::layout {
namespace {

constexpr int64_t kOutlineFormat = 0x316f6c70;  // "plo1"
constexpr int64_t kHeadWords = 9;
constexpr auto kWord = int64_t(sizeof(int64_t));

tl::unexpected<Error> misshapen(const char* why) {
  return fail(ErrorClass::argument, "outline", std::string("malformed description: ") + why);
}

// A monotone node that is one list of adjacent bytes; nullptr: something else.
const Node* plain_list(const LoopTree& tree) {
  const Node* n = tree.body();
  if (n == nullptr || !tree.is_monotone(Cursor::kForever)) return nullptr;
  const bool copies = n->kind == NodeKind::blocks && n->child->kind == NodeKind::bytes;
  return copies || n->kind == NodeKind::segments ? n : nullptr;
}

// Two tiles that a part of the file cuts, and one between them that it holds: all is needed.
constexpr int64_t kMostTiles = 2;

Wide floor_div(Wide a, Wide b) { return a / b - (a % b < 0 ? 1 : 0); }

// Ascending and apart.
std::vector<ChapterRange> joined(std::vector<ChapterRange> ranges) {
  std::erase_if(ranges, [](const ChapterRange& r) { return r.begin >= r.end; });
  std::ranges::sort(ranges, {}, &ChapterRange::begin);
  std::vector<ChapterRange> all;
  for (const ChapterRange& r : ranges) {
    if (all.empty() || all.back().end < r.begin)
      all.push_back(r);
    else
      all.back().end = std::max(all.back().end, r.end);
  }
  return all;
}

// Where a tile's lowest byte may lie.
struct Lowest {
  Wide least = 0, most = 0;

  Lowest behind(Wide bytes) const { return {least + bytes, most + bytes}; }
};

// The chapters whose bytes, or what follows them up to the next chapter, may lie in `file`.
ChapterRange touching(std::span<const Off> places, Lowest tile, Extent file) {
  const auto begin = std::ranges::partition_point(
      places.subspan(1), [&](Off end) { return tile.most + end <= file.begin; });
  const auto end = std::ranges::partition_point(
      places.first(places.size() - 1), [&](Off place) { return tile.least + place < file.end; });
  return {begin - places.subspan(1).begin(), end - places.begin()};
}

}  // namespace

std::optional<Outline> Outline::of(const LoopTree& tree, int64_t blocks_per_chapter) {
  const Node* const list = plain_list(tree);
  if (list == nullptr || list->count / blocks_per_chapter < kLongChapters) return std::nullopt;
  Outline o;
  o.true_lb_ = tree.true_lb();
  o.lb_ = tree.lb();
  o.extent_ = tree.extent();
  o.blocks_ = list->count;
  o.per_chapter_ = blocks_per_chapter;
  o.unit_ = list->granule;
  o.equal_bytes_ = list->kind == NodeKind::blocks ? list->child->size : 0;
  o.last_place_ = list->place(list->count - 1);
  const auto chapters = size_t(divide_up(o.blocks_, o.per_chapter_));
  o.places_.reserve(chapters + 1);
  o.starts_.reserve(chapters + 1);
  for (int64_t i = 0; i < o.blocks_; i += o.per_chapter_) {
    o.places_.push_back(list->place(i));
    o.starts_.push_back(list->start_of(i));
  }
  o.places_.push_back(list->span);
  o.starts_.push_back(list->size);
  return o;
}

int64_t Outline::blocks_of(int64_t chapter) const noexcept {
  return std::min(per_chapter_, blocks_ - chapter * per_chapter_);
}

int64_t Outline::chapter_at(int64_t position) const noexcept {
  return std::ranges::upper_bound(starts_, position) - starts_.begin() - 1;
}

std::vector<ChapterRange> Outline::needed(StreamRange own, Off first, Extent file) const {
  const int64_t tile = starts_.back();
  const int64_t last_tile = (own.end - 1) / tile;
  const int64_t from = chapter_at(own.begin), to = chapter_at((own.end - 1) % tile) + 1;
  const auto c = size_t(from);
  // Blocks before the first byte, and behind it in the chapter, take at least their own bytes.
  const Off least_in = places_[c] + (own.begin - starts_[c]);
  const Off most_in =
      own.begin == starts_[c] ? least_in : places_[c + 1] - (starts_[c + 1] - own.begin);
  const Lowest lowest{Wide(first) - most_in, Wide(first) - least_in};
  const Wide t_begin = floor_div(Wide(file.begin) - lowest.most - places_.back(), extent_) + 1;
  const Wide t_end = floor_div(Wide(file.end) - 1 - lowest.least, extent_) + 1;
  const auto begin = int64_t(std::max<Wide>(t_begin, 0));
  const auto end = int64_t(std::min<Wide>(t_end, Wide(last_tile) + 1));
  if (end - begin > kMostTiles) return {{0, chapters()}};
  std::vector<ChapterRange> ranges{{from, from + 1}};
  for (int64_t t = begin; t < end; ++t) {
    ChapterRange r = touching(places_, lowest.behind(Wide(t) * extent_), file);
    if (t == 0) r.begin = std::max(r.begin, from);
    if (t == last_tile) r.end = std::min(r.end, to);
    ranges.push_back(r);
  }
  return joined(std::move(ranges));
}

// --- The wire ---

int64_t Outline::serialised_bytes() const noexcept {
  return (kHeadWords + 2 * int64_t(places_.size())) * kWord;
}

void Outline::serialise(std::vector<std::byte>& out) const {
  out.reserve(out.size() + size_t(serialised_bytes()));
  WireWriter w(out);
  for (const int64_t word : {kOutlineFormat, true_lb_, lb_, extent_, blocks_, per_chapter_, unit_,
                             equal_bytes_, last_place_})
    w.put(word);
  w.put(places_);
  w.put(starts_);
}

bool Outline::is_outline(std::span<const std::byte> in) noexcept {
  return WireReader(in).get() == kOutlineFormat;
}

namespace {

std::vector<int64_t> numbers(WireReader& in, size_t n) {
  const std::span<const std::byte> bytes = in.words(n);
  std::vector<int64_t> all(bytes.size() / sizeof(int64_t));
  if (!all.empty()) std::memcpy(all.data(), bytes.data(), bytes.size());
  return all;
}

}  // namespace

Result<Outline> Outline::deserialise(std::span<const std::byte> in, int64_t blocks_per_chapter) {
  WireReader r(in);
  if (r.get() != kOutlineFormat) return misshapen("not an outline of this version");
  Outline o;
  o.true_lb_ = r.get();
  o.lb_ = r.get();
  o.extent_ = r.get();
  o.blocks_ = r.get();
  o.per_chapter_ = r.get();
  o.unit_ = r.get();
  o.equal_bytes_ = r.get();
  o.last_place_ = r.get();
  if (!r.ok() || o.per_chapter_ != blocks_per_chapter || o.blocks_ < 1)
    return misshapen("its head");
  const auto ends = size_t(divide_up(o.blocks_, o.per_chapter_)) + 1;
  if (r.words_left() % 2 != 0 || r.words_left() / 2 != ends) return misshapen("its chapters");
  o.places_ = numbers(r, ends);
  o.starts_ = numbers(r, ends);
  if (!o.is_sound()) return misshapen("numbers that no list has");
  return o;
}

// That chapters ascend, each with room for its bytes, so that a tree can be made of them; the
// blocks themselves are looked at when they come.
bool Outline::is_sound() const noexcept {
  const int64_t size = starts_.back();
  const bool counts = unit_ >= 1 && equal_bytes_ >= 0 && equal_bytes_ <= size / blocks_ &&
                      (equal_bytes_ == 0 || size == equal_bytes_ * blocks_);
  if (!counts || places_.front() != 0 || starts_.front() != 0 || size < blocks_) return false;
  if (extent_ < places_.back() || true_lb_ == INT64_MIN) return false;
  for (size_t c = 1; c < places_.size(); ++c) {
    const bool ascends = places_[c] > places_[c - 1] && starts_[c] > starts_[c - 1];
    if (!ascends || starts_[c] - starts_[c - 1] > places_[c] - places_[c - 1]) return false;
  }
  const auto last = size_t(chapters()) - 1;
  const bool alone = blocks_of(int64_t(last)) == 1;
  const int64_t last_bytes = places_.back() - last_place_;
  if (last_place_ < places_[last] || last_bytes < 1 || (last_place_ == places_[last]) != alone)
    return false;
  const int64_t before = size - starts_[last] - last_bytes;  // of the chapter, its last block
  return alone ? before == 0 : before >= 1 && before <= last_place_ - places_[last];
}

// Places within the chapter fit 32 bits as multiples of the unit, and so do its places in the
// stream.
bool Outline::is_narrow(int64_t chapter) const noexcept {
  const auto c = size_t(chapter);
  return (places_[c + 1] - places_[c]) / unit_ <= int64_t{UINT32_MAX};
}

int64_t Outline::chapter_bytes(int64_t chapter) const noexcept {
  const int64_t n = blocks_of(chapter);
  const int64_t words = is_narrow(chapter) ? divide_up(n, 2) : n;
  return words * (equal_bytes_ > 0 ? 1 : 2) * kWord;
}

int64_t Outline::chapter_bytes() const noexcept {
  int64_t sum = 0;
  for (int64_t c = 0; c < chapters(); ++c) sum += chapter_bytes(c);
  return sum;
}

namespace {

// `n` numbers of a list from the `first` on, less that one: halves of words, as multiples of the
// unit, or words.
void put_numbers(std::vector<std::byte>& out, const OffsetList& list, int64_t first, int64_t n,
                 int64_t unit, bool narrow) {
  WireWriter w(out);
  const auto at = [&](int64_t i) { return list[size_t(first + i)] - list[size_t(first)]; };
  if (!narrow) {
    for (int64_t i = 0; i < n; ++i) w.put(at(i));
    return;
  }
  std::vector<uint32_t> halves(static_cast<size_t>(n));
  if (list.unit() == unit) {
    const std::span<const uint32_t> units = list.units().subspan(size_t(first), size_t(n));
    std::ranges::transform(units, halves.begin(), [&](uint32_t x) { return x - units[0]; });
  } else {
    for (int64_t i = 0; i < n; ++i) halves[size_t(i)] = uint32_t(at(i) / unit);
  }
  w.put_halves(halves);
}

// The same where they lie in a message.
class ChapterNumbers {
 public:
  ChapterNumbers(WireReader& in, int64_t n, int64_t unit, bool narrow)
      : bytes_(in.words(uint64_t(narrow ? divide_up(n, 2) : n))), unit_(unit), narrow_(narrow) {}

  Wide operator[](int64_t i) const {
    return narrow_ ? Wide{load<uint32_t>(i)} * unit_ : Wide{load<int64_t>(i)};
  }

 private:
  template <class T>
  T load(int64_t i) const {
    T value;
    std::memcpy(&value, bytes_.data() + size_t(i) * sizeof value, sizeof value);
    return value;
  }

  std::span<const std::byte> bytes_;
  int64_t unit_;
  bool narrow_;
};

}  // namespace

void Outline::serialise_chapter(const LoopTree& tree, int64_t chapter,
                                std::vector<std::byte>& out) const {
  const Node& list = *tree.body();
  const int64_t first = chapter * per_chapter_, n = blocks_of(chapter);
  const bool narrow = is_narrow(chapter);
  put_numbers(out, list.displacements, first, n, unit_, narrow);
  if (equal_bytes_ == 0) put_numbers(out, list.starts, first, n, unit_, narrow);
}

// --- A tree of which a part is known ---

// The lists of a tree's blocks, chapter by chapter.
class Excerpt::Assembly {
 public:
  Assembly(const Outline& outline, int64_t blocks)
      : outline_(outline),
        places_(size_t(blocks), outline.unit_, outline.places_.back()),
        starts_(size_t(blocks) + 1, outline.unit_, outline.starts_.back()) {}

  // As adjacent bytes; its last block at its place, where the tree ends with it.
  void add_unknown(int64_t chapter) {
    const auto c = size_t(chapter);
    add(outline_.places_[c], outline_.starts_[c]);
    if (blocks_unknown(outline_, chapter) == 1) return;
    add(outline_.last_place_,
        outline_.starts_[c + 1] - (outline_.places_.back() - outline_.last_place_));
  }
  static int64_t blocks_unknown(const Outline& outline, int64_t chapter) {
    const bool has_last = chapter + 1 == outline.chapters() && outline.blocks_of(chapter) > 1;
    return has_last ? 2 : 1;
  }

  void add_known(int64_t chapter, Cursor& cursor) {
    const auto c = size_t(chapter);
    cursor.seek(outline_.starts_[c]);
    for (int64_t at = outline_.starts_[c]; at < outline_.starts_[c + 1]; at = cursor.position()) {
      const Run run = cursor.next(outline_.starts_[c + 1] - at);
      for (int64_t i = 0; i < run.count; ++i) add(run.offset + i * run.stride, at + i * run.block);
    }
  }

  // False: a number lies outside the chapter.
  bool add_new(int64_t chapter, WireReader& in) {
    const auto c = size_t(chapter);
    const int64_t n = outline_.blocks_of(chapter), equal = outline_.equal_bytes_;
    const bool narrow = outline_.is_narrow(chapter);
    const ChapterNumbers places(in, n, outline_.unit_, narrow);
    const ChapterNumbers starts =
        equal > 0 ? places : ChapterNumbers(in, n, outline_.unit_, narrow);
    if (!in.ok()) return false;
    const Off room = outline_.places_[c + 1] - outline_.places_[c];
    const int64_t bytes = outline_.starts_[c + 1] - outline_.starts_[c];
    bool fits = places[0] == 0 && (equal > 0 || starts[0] == 0);
    for (int64_t i = 0; fits && i < n; ++i) {
      const Wide start = equal > 0 ? Wide(i) * equal : starts[i];
      fits = places[i] >= 0 && places[i] < room && start >= 0 && start < bytes;
      if (fits) add(outline_.places_[c] + Off(places[i]), outline_.starts_[c] + int64_t(start));
    }
    return fits;
  }

  Result<LoopTree> done() && {
    starts_.push_back(outline_.starts_.back());
    auto body = make();
    if (!body) return tl::unexpected(body.error());
    body->offset = outline_.true_lb_;
    auto tree = TreeBuilder::make(*body, outline_.lb_, Wide(outline_.lb_) + outline_.extent_);
    if (!tree) return tree;
    const bool same =
        tree->size() == outline_.starts_.back() && body->span() == outline_.places_.back();
    if (!same || !tree->is_monotone(Cursor::kForever)) return misshapen("blocks out of order");
    return tree;
  }

 private:
  void add(Off place, int64_t start) {
    places_.push_back(place);
    starts_.push_back(start);
  }

  // Normalised: as the builders would, which are asked where it is not plain that they would.
  Result<Placed> make() {
    const NodePtr equal = equal_blocks();
    if (equal && is_normal_list(places_, {}, equal.get()))
      return placed(0, keep_normal(std::move(places_), {}, equal));
    if (is_normal_list(places_, starts_, nullptr))
      return placed(0, keep_normal(std::move(places_), std::move(starts_), nullptr));
    for (size_t i = 0; i < places_.size(); ++i)
      if (starts_[i + 1] <= starts_[i]) return misshapen("a block without bytes");
    return make_stretches(places_.size(), [&](size_t i) {
      return Stretch{places_[i], starts_[i + 1] - starts_[i]};
    });
  }

  // What all blocks are, where each is there and all are alike.
  NodePtr equal_blocks() const {
    const bool all = int64_t(places_.size()) == outline_.blocks_ && outline_.equal_bytes_ > 0;
    return all ? node_of({0, outline_.equal_bytes_, nullptr}) : nullptr;
  }

  const Outline& outline_;
  OffsetList places_, starts_;
};

Excerpt::Excerpt(Outline outline)
    : outline_(std::move(outline)), known_(size_t(outline_.chapters())) {}

Result<void> Excerpt::learn(std::span<const int64_t> chapters, std::span<const std::byte> in) {
  std::vector<bool> is_new(known_.size());
  for (const int64_t c : chapters) is_new[size_t(c)] = true;
  int64_t blocks = 0;
  for (int64_t c = 0; c < outline_.chapters(); ++c) {
    const bool there = knows(c) || is_new[size_t(c)];
    blocks += there ? outline_.blocks_of(c) : Assembly::blocks_unknown(outline_, c);
  }
  Assembly assembly(outline_, blocks);
  Cursor cursor(tree_, -outline_.true_lb_, 1);
  WireReader reader(in);
  for (int64_t c = 0; c < outline_.chapters(); ++c) {
    if (is_new[size_t(c)]) {
      if (!assembly.add_new(c, reader)) return misshapen("a block outside its chapter");
    } else if (knows(c)) {
      assembly.add_known(c, cursor);
    } else {
      assembly.add_unknown(c);
    }
  }
  if (!reader.rest().empty()) return misshapen("bytes behind its end");
  auto tree = std::move(assembly).done();
  if (!tree) return tl::unexpected(tree.error());
  tree_ = *std::move(tree);
  for (const int64_t c : chapters) known_[size_t(c)] = true;
  return {};
}

}  // namespace penstock::layout
