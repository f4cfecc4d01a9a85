// Builds normalised nodes: zero-length parts vanish, adjacent bytes join,
// regular displacements become loops, loops of loops become one where they can.
#include "layout/node.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>

#include "layout/list_node.hpp"
#include "layout/normal_list.hpp"

namespace penstock::layout {
namespace {

tl::unexpected<Error> overflow(const char* what) {
  return fail(ErrorClass::argument, "datatype", std::string(what) + " exceeds 64 bits");
}

// In four lanes: a step of the hash waits for the one before it, and a list may have millions.
// Equal lists are kept alike, so what is hashed is what is kept.
Hash mix_list(Hash seed, const OffsetList& list) {
  constexpr size_t kLanes = 4;
  using Words = std::array<uint64_t, kLanes>;
  const std::span<const std::byte> bytes = list.memory();
  Words lanes = {seed, ~seed, seed >> 1, seed << 1};
  for (size_t at = 0; at < bytes.size(); at += sizeof(Words)) {
    Words words{};
    std::memcpy(words.data(), bytes.data() + at, std::min(sizeof words, bytes.size() - at));
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = mix(lanes[lane], words[lane]);
  }
  Hash h = mix(mix(seed, uint64_t(list.unit())), list.size());
  for (const Hash lane : lanes) h = mix(h, lane);
  return h;
}

Hash hash_of(const Node& n) {
  Hash h = mix(uint64_t(n.kind) + 1, uint64_t(n.count));
  h = mix(h, uint64_t(n.size));
  h = mix(h, uint64_t(n.stride));
  if (n.child) h = mix(h, n.child->hash);
  for (const OffsetList* list : {&n.displacements, &n.starts}) h = mix_list(h, *list);
  for (const NodePtr& c : n.children) h = mix(h, c->hash);
  return h;
}

// Sizes and spans are known; the rest follows from them.
Result<NodePtr> seal(Node&& n, Wide size, Wide span) {
  if (!fits(size)) return overflow("its size");
  if (!fits(span)) return overflow("its span");
  if (n.depth > kMaxDepth) {
    return fail(ErrorClass::unsupported, "datatype",
                "nested deeper than " + std::to_string(kMaxDepth) + " levels");
  }
  n.size = int64_t(size);
  n.span = int64_t(span);
  n.hash = hash_of(n);
  return std::make_shared<const Node>(std::move(n));
}

NodePtr bytes_node(int64_t length) {
  Node n;
  n.count = 1;
  n.granule = length;
  return *seal(std::move(n), length, length);
}

// REQUIRES count >= 2. `lowest` is where the lowest copy's origin lies.
Result<Placed> loop_node(int64_t count, Off stride, Wide lowest, NodePtr child) {
  if (!fits(lowest)) return overflow("a displacement");
  Node n;
  n.kind = NodeKind::loop;
  n.count = count;
  n.stride = stride;
  n.depth = child->depth + 1;
  n.monotone = child->monotone && stride >= child->span;
  n.granule = gcd(child->granule, stride);
  n.blocks = saturate(Wide(count) * child->blocks);
  const Wide size = Wide(count) * child->size;
  const Wide reach = Wide(count - 1) * (stride < 0 ? -Wide(stride) : Wide(stride));
  const Wide span = reach + child->span;
  if (!fits(lowest + span)) return overflow("a displacement");
  n.child = std::move(child);
  auto node = seal(std::move(n), size, span);
  if (!node) return tl::unexpected(node.error());
  return Placed{int64_t(lowest), 0, std::move(*node)};
}

Wide lowest_of(Off first, int64_t count, Off stride) {
  return stride < 0 ? first + Wide(count - 1) * stride : Wide(first);
}

void drop_empty(std::vector<Placed>& items) {
  std::erase_if(items, [](const Placed& p) { return p.empty(); });
}

Result<void> join_adjacent(std::vector<Placed>& items) {
  size_t last = 0;
  for (size_t i = 1; i < items.size(); ++i) {
    Placed& a = items[last];
    const Wide end = Wide(a.offset) + a.length;
    if (a.plain() && items[i].plain() && end == items[i].offset) {
      if (!fits(Wide(a.length) + items[i].length)) return overflow("its size");
      a.length += items[i].length;
    } else if (++last != i) {
      items[last] = std::move(items[i]);
    }
  }
  items.resize(last + 1);
  return {};
}

bool same_shape(const Placed& a, const Placed& b) {
  return a.plain() || b.plain() ? a.length == b.length : equal(a.node, b.node);
}

ListScan::Entry entry_of(const Placed& p) {
  if (p.plain()) return {p.offset, p.length, p.length, p.length};
  return {p.offset, p.node->span, p.node->size, p.node->granule, p.node->blocks};
}

void set_children(Node& n, const std::vector<Placed>& items) {
  if (n.kind == NodeKind::blocks) n.child = node_of(items[0]);
  if (n.kind != NodeKind::sequence) return;
  n.children.reserve(items.size());
  std::unordered_map<int64_t, NodePtr> plain;  // by length: equal ones share a node
  for (const Placed& p : items) {
    NodePtr& shared = plain[p.plain() ? p.length : 0];
    if (!p.plain() || !shared) shared = node_of(p);
    n.children.push_back(shared);
  }
}

NodeKind kind_of(const std::vector<Placed>& items, bool same) {
  if (same) return NodeKind::blocks;
  const bool plain = std::ranges::all_of(items, [](const Placed& p) { return p.plain(); });
  return plain ? NodeKind::segments : NodeKind::sequence;
}

Result<Placed> list_node(const std::vector<Placed>& items, const ListScan& scan, bool same) {
  ListFill fill(scan, kind_of(items, same));
  for (const Placed& p : items) fill.add(p.offset, p.size());
  set_children(fill.node(), items);
  return std::move(fill).done();
}

using Known = std::set<std::pair<const Node*, const Node*>>;

// `known` holds pairs found equal, so that shared children are compared once.
bool equal_nodes(const Node* a, const Node* b, Known& known) {
  if (a == b) return true;
  if (a->hash != b->hash || a->kind != b->kind || a->count != b->count || a->size != b->size ||
      a->span != b->span || a->stride != b->stride) {
    return false;
  }
  if (a->displacements != b->displacements || a->starts != b->starts) return false;
  if (known.contains({a, b})) return true;
  if (a->child && !equal_nodes(a->child.get(), b->child.get(), known)) return false;
  for (size_t i = 0; i < a->children.size(); ++i) {
    if (!equal_nodes(a->children[i].get(), b->children[i].get(), known)) return false;
  }
  known.insert({a, b});
  return true;
}

}  // namespace

int64_t Node::entry_at(int64_t position) const noexcept {
  if (starts.empty()) return position / child->size;
  return starts.upper_bound(position) - 1;
}

bool equal(const NodePtr& a, const NodePtr& b) {
  if (a == b || !a || !b) return a == b;
  Known known;
  return equal_nodes(a.get(), b.get(), known);
}

NodePtr node_of(const Placed& placed) {
  return placed.node ? placed.node : bytes_node(placed.length);
}

Placed placed(Off offset, const NodePtr& node) {
  if (!node) return {};
  if (node->kind == NodeKind::bytes) return {offset, node->size, nullptr};
  return {offset, 0, node};
}

Result<Placed> make_loop(int64_t count, Off stride, const Placed& item) {
  if (count == 0 || item.empty()) return Placed{};
  if (count == 1) return item;
  if (item.plain() && stride == item.length) {
    const Wide length = Wide(count) * item.length;
    if (!fits(item.offset + length) || !fits(length)) return overflow("its size");
    return Placed{item.offset, int64_t(length), nullptr};
  }
  const bool continues = item.node && item.node->kind == NodeKind::loop &&
                         Wide(item.node->stride) * item.node->count == stride;
  if (!continues) {
    return loop_node(count, stride, lowest_of(item.offset, count, stride), node_of(item));
  }
  const Node& inner = *item.node;
  const Wide total = Wide(count) * inner.count;
  if (!fits(total)) return overflow("a count");
  const Off first = item.offset + inner.first();
  return loop_node(int64_t(total), inner.stride, lowest_of(first, int64_t(total), inner.stride),
                   inner.child);
}

Result<Placed> make_list(std::vector<Placed> items) {
  drop_empty(items);
  if (items.empty()) return Placed{};
  if (auto joined = join_adjacent(items); !joined) return tl::unexpected(joined.error());
  if (items.size() == 1) return items[0];
  const bool same = std::all_of(items.begin() + 1, items.end(),
                                [&](const Placed& p) { return same_shape(items[0], p); });
  ListScan scan;
  for (const Placed& p : items) scan.add(entry_of(p));
  if (same && scan.regular()) return make_loop(scan.count(), scan.distance(), items[0]);
  if (auto fits = scan.check(); !fits) return tl::unexpected(fits.error());
  return list_node(items, scan, same);
}

NodePtr keep_list(OffsetList displacements, OffsetList starts, NodePtr child) {
  if (!is_normal_list(displacements, starts, child.get())) return nullptr;
  Node n;
  n.kind = child ? NodeKind::blocks : NodeKind::segments;
  n.count = n.blocks = int64_t(displacements.size());
  n.depth = 2;
  n.granule = displacements.unit();
  const Wide unit = n.granule, last_place = displacements.units().back();
  const Wide total = child ? Wide(n.count) * child->size : starts.units().back() * unit;
  const Wide before_last = child ? 0 : starts.units()[size_t(n.count) - 1] * unit;
  const Wide last_length = child ? Wide(child->size) : total - before_last;
  n.displacements = std::move(displacements);
  n.starts = std::move(starts);
  n.child = std::move(child);
  auto node = seal(std::move(n), total, last_place * unit + last_length);
  return node ? std::move(*node) : nullptr;
}

Result<void> ListScan::check() const {
  if (!fits(high_) || !fits(span())) return overflow("its span");
  if (!fits(bytes_)) return overflow("its size");
  return {};
}

ListFill::ListFill(const ListScan& scan, NodeKind kind)
    : low_(scan.low()), span_(scan.span()), bytes_(scan.bytes()) {
  const auto n = size_t(scan.count());
  node_.kind = kind;
  node_.count = scan.count();
  node_.monotone = scan.ascending();
  node_.granule = scan.granule();
  node_.blocks = saturate(scan.blocks());
  node_.displacements = OffsetList(n, scan.granule(), int64_t(span_));
  if (kind == NodeKind::blocks) return;
  node_.starts = OffsetList(n + 1, scan.granule(), int64_t(bytes_));
  node_.starts.push_back(0);
}

Result<Placed> ListFill::done() && {
  const auto follow = [&](const NodePtr& child) {
    node_.monotone = node_.monotone && child->monotone;
    node_.depth = std::max(node_.depth, child->depth + 1);
  };
  if (node_.kind == NodeKind::segments) node_.depth = 2;
  if (node_.child) follow(node_.child);
  for (const NodePtr& child : node_.children) follow(child);
  auto node = seal(std::move(node_), bytes_, span_);
  if (!node) return tl::unexpected(node.error());
  return Placed{low_, 0, std::move(*node)};
}

}  // namespace penstock::layout
