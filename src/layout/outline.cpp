// Long lists in chapters: what is needed of them, the wire, and trees of which a part is known.
#include "layout/outline.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "layout/cursor.hpp"
#include "layout/node.hpp"
#include "layout/wire.hpp"
#include "layout/wire_list.hpp"

namespace penstock::layout {
namespace {

constexpr int64_t kOutlineFormat = 0x316f6c70;  // "plo1"
constexpr int64_t kHeadWords = 9;
constexpr auto kWord = int64_t(sizeof(int64_t));

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
  if (r.get() != kOutlineFormat) return malformed("not an outline of this version");
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
    return malformed("its head");
  const auto ends = size_t(divide_up(o.blocks_, o.per_chapter_)) + 1;
  if (r.words_left() % 2 != 0 || r.words_left() / 2 != ends) return malformed("its chapters");
  o.places_ = numbers(r, ends);
  o.starts_ = numbers(r, ends);
  if (!o.is_sound()) return malformed("numbers that no list has");
  return o;
}

// That chapters ascend, each with room for its bytes, so that a tree can be made of them; the
// blocks themselves are looked at when they come.
bool Outline::is_sound() const noexcept {
  const bool counts = unit_ >= 1 && size() >= blocks_ && equal_bytes_ >= 0 &&
                      equal_bytes_ <= size() / blocks_ &&
                      (equal_bytes_ == 0 || size() == equal_bytes_ * blocks_);
  if (!counts || places_.front() != 0 || starts_.front() != 0) return false;
  for (size_t c = 1; c < places_.size(); ++c) {
    if (places_[c] <= places_[c - 1] || starts_[c] <= starts_[c - 1]) return false;
    if (starts_[c] - starts_[c - 1] > places_[c] - places_[c - 1]) return false;
  }
  return extent_ >= places_.back() && has_sound_end();
}

// That the last block lies in the last chapter, with room for the others before it.
bool Outline::has_sound_end() const noexcept {
  const auto last = size_t(chapters()) - 1;
  if (last_place_ < places_[last] || last_place_ >= places_.back()) return false;
  const int64_t before = size() - starts_[last] - (places_.back() - last_place_);
  if (blocks_of(int64_t(last)) == 1) return last_place_ == places_[last] && before == 0;
  return before >= 1 && before <= last_place_ - places_[last];
}

// Places within the chapter fit 32 bits as multiples of the unit, and so do its places in the
// stream.
bool Outline::is_narrow(int64_t chapter) const noexcept {
  const auto c = size_t(chapter);
  return (places_[c + 1] - places_[c]) / unit_ <= int64_t{UINT32_MAX};
}

int64_t Outline::chapter_bytes(int64_t chapter) const noexcept {
  const int64_t n = blocks_of(chapter);
  const bool narrow = is_narrow(chapter);
  const int64_t starts = equal_bytes_ > 0 ? 0 : words_of_list(n + 1, narrow);
  return (words_of_list(n, narrow) + starts) * kWord;
}

int64_t Outline::chapter_bytes() const noexcept {
  int64_t sum = 0;
  for (int64_t c = 0; c < chapters(); ++c) sum += chapter_bytes(c);
  return sum;
}

namespace {

// `n` numbers of a list from the `first` on, less that one: as multiples of the unit, or as they
// are.
void put_numbers(WireWriter& out, const OffsetList& list, int64_t first, int64_t n, int64_t unit,
                 bool narrow) {
  const auto at = [&](int64_t i) { return list[size_t(first + i)] - list[size_t(first)]; };
  if (!narrow) {
    for (int64_t i = 0; i < n; ++i) out.put(at(i));
    return;
  }
  std::vector<uint32_t> halves(static_cast<size_t>(n));
  if (list.unit() == unit) {
    const std::span<const uint32_t> units = list.units().subspan(size_t(first), size_t(n));
    std::ranges::transform(units, halves.begin(), [&](uint32_t x) { return x - units[0]; });
  } else {
    for (int64_t i = 0; i < n; ++i) halves[size_t(i)] = uint32_t(at(i) / unit);
  }
  out.put(unit);
  out.put_halves(halves);
}

}  // namespace

void Outline::serialise_chapter(const LoopTree& tree, int64_t chapter,
                                std::vector<std::byte>& out) const {
  const Node& list = *tree.body();
  const int64_t first = chapter * per_chapter_, n = blocks_of(chapter);
  const bool narrow = is_narrow(chapter);
  WireWriter w(out);
  put_numbers(w, list.displacements, first, n, unit_, narrow);
  if (equal_bytes_ == 0) put_numbers(w, list.starts, first, n + 1, unit_, narrow);
}

// Normalised: the chapter's lowest byte is at 0.
Result<std::shared_ptr<const Node>> Outline::read_chapter(int64_t chapter, WireReader& in) const {
  const auto c = size_t(chapter);
  const int64_t n = blocks_of(chapter), bytes = starts_[c + 1] - starts_[c];
  const bool narrow = is_narrow(chapter);
  const WireList places = WireList::read(in, n, narrow);
  const WireList starts = equal_bytes_ > 0 ? places : WireList::read(in, n + 1, narrow);
  if (!in.ok()) return malformed("cut short");
  auto built = equal_bytes_ > 0
                   ? blocks_from(places, size_t(n), node_of({0, equal_bytes_, nullptr}))
                   : segments_from(places, starts, size_t(n));
  if (!built) return tl::unexpected(built.error());
  const Off room = places_[c + 1] - places_[c];
  const bool fills = built->size() == bytes && built->offset == 0 && built->span() <= room;
  const NodePtr node = fills ? node_of(*built) : nullptr;
  if (!node || !node->monotone) return malformed("a chapter");
  return node;
}

// --- A tree of which a part is known ---

Excerpt::Excerpt(Outline outline)
    : outline_(std::move(outline)), known_(size_t(outline_.chapters())) {}

Result<void> Excerpt::learn(std::span<const int64_t> chapters, std::span<const std::byte> in) {
  Nodes known = known_;
  WireReader reader(in);
  for (const int64_t c : chapters) {
    auto node = outline_.read_chapter(c, reader);
    if (!node) return tl::unexpected(node.error());
    known[size_t(c)] = *std::move(node);
  }
  if (!reader.rest().empty()) return malformed("bytes behind its end");
  auto tree = assemble(known);
  if (!tree) return tl::unexpected(tree.error());
  tree_ = *std::move(tree);
  known_ = std::move(known);
  return {};
}

// The last block is at its place in any case: the tree ends with it.
Result<LoopTree> Excerpt::assemble(const Nodes& known) const {
  const Outline& o = outline_;
  std::vector<Placed> items;
  items.reserve(known.size() + 1);
  for (size_t c = 0; c < known.size(); ++c) {
    const int64_t bytes = o.starts_[c + 1] - o.starts_[c];
    items.push_back(known[c] ? placed(o.places_[c], known[c]) : Placed{o.places_[c], bytes, {}});
  }
  if (!known.back()) {
    const int64_t last = o.places_.back() - o.last_place_;
    items.back().length -= last;
    items.push_back({o.last_place_, last, {}});
  }
  auto body = make_list(std::move(items));
  if (!body) return tl::unexpected(body.error());
  const bool same = body->size() == o.size() && body->span() == o.places_.back();
  body->offset = o.true_lb_;
  auto tree = TreeBuilder::make(*body, o.lb_, Wide(o.lb_) + o.extent_);
  if (tree && (!same || !tree->is_monotone(Cursor::kForever))) return malformed("its chapters");
  return tree;
}

}  // namespace penstock::layout
