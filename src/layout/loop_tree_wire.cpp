// Loop trees to another rank and back. A tree travels as its distinct nodes, each after
// its children, so equal nodes travel once, shared or not: equal trees have equal descriptions.
// Every node is rebuilt by the normalising builders, so that what arrives obeys every invariant or
// is refused. Neither side holds a second list of the blocks: they are taken from where they lie,
// and a list that is normal already is copied as it is.
#include <unordered_map>
#include <utility>

#include "layout/list_node.hpp"
#include "layout/node.hpp"
#include "layout/wire.hpp"
#include "layout/wire_list.hpp"

namespace penstock::layout {
namespace {

constexpr int64_t kFormat = 0x31746c70;  // "plt1"
constexpr int64_t kHeaderWords = 5;

// Beside a node's kind: that a list comes as its unit and multiples of it, in halves of words.
constexpr int64_t kKindMask = 15, kNarrowPlaces = 16, kNarrowStarts = 32;

int64_t words_of(const OffsetList& list) {
  return words_of_list(int64_t(list.size()), list.narrow());
}

int64_t words_of(const Node& n) {
  const int64_t fixed = n.kind == NodeKind::loop ? 3 : 2;
  const int64_t starts = n.kind == NodeKind::segments ? words_of(n.starts) : 0;
  return fixed + words_of(n.displacements) + starts + (n.child ? 1 : 0) +
         int64_t(n.children.size());
}

int64_t kind_word(const Node& n) {
  int64_t word = int64_t(n.kind);
  if (n.displacements.narrow()) word |= kNarrowPlaces;
  if (n.kind == NodeKind::segments && n.starts.narrow()) word |= kNarrowStarts;
  return word;
}

// The distinct nodes of a tree, each after its children.
class Distinct {
 public:
  void add(const NodePtr& n) {
    if (ids_.contains(&n)) return;
    if (n->child) add(n->child);
    for (const NodePtr& c : n->children) add(c);
    ids_.emplace(&n, int64_t(nodes_.size()));
    nodes_.push_back(n.get());
    words_ += words_of(*n);
  }

  const std::vector<const Node*>& nodes() const { return nodes_; }
  int64_t id(const NodePtr& n) const { return ids_.at(&n); }
  int64_t words() const { return words_; }

 private:
  struct HashOf {
    size_t operator()(const NodePtr* n) const { return size_t((*n)->hash); }
  };
  struct Equal {
    bool operator()(const NodePtr* a, const NodePtr* b) const { return equal(*a, *b); }
  };
  std::unordered_map<const NodePtr*, int64_t, HashOf, Equal> ids_;
  std::vector<const Node*> nodes_;
  int64_t words_ = 0;
};

void put(WireWriter& out, const OffsetList& list) {
  if (!list.narrow()) return out.put(list.bytes());
  out.put(list.unit());
  out.put_halves(list.units());
}

void put(WireWriter& out, const Node& n, const Distinct& known) {
  out.put(kind_word(n));
  out.put(n.kind == NodeKind::bytes ? n.size : n.count);
  if (n.kind == NodeKind::loop) out.put(n.stride);
  put(out, n.displacements);
  if (n.kind == NodeKind::segments) put(out, n.starts);
  if (n.child) out.put(known.id(n.child));
  for (const NodePtr& c : n.children) out.put(known.id(c));
}

class TreeReader {
 public:
  explicit TreeReader(WireReader& in) : in_(in) {}

  Result<NodePtr> read(int64_t count) {
    if (count < 0 || uint64_t(count) > in_.words_left() / 2) return malformed("too many nodes");
    for (int64_t i = 0; i < count; ++i) {
      auto node = read_node();
      if (!node) return node;
      nodes_.push_back(std::move(*node));
    }
    return nodes_.empty() ? NodePtr() : nodes_.back();
  }

 private:
  Result<NodePtr> read_node() {
    const int64_t word = in_.get();
    const int64_t count = in_.get();
    const int64_t kind = word & kKindMask;
    if (!in_.ok() || count < 1) return malformed("a count");
    const bool known_kind = kind <= int64_t(NodeKind::sequence) &&
                            (word & ~(kKindMask | kNarrowPlaces | kNarrowStarts)) == 0;
    if (!known_kind) return malformed("an unknown kind of node");
    auto built = build(NodeKind(kind), word, count);
    if (!built) return tl::unexpected(built.error());
    NodePtr node = built->empty() ? nullptr : node_of(*built);
    // What the builders changed was not what a writer had: its offset would be lost.
    if (!node || built->offset != 0 || int64_t(node->kind) != kind) return malformed("not normal");
    return node;
  }

  Result<Placed> build(NodeKind kind, int64_t word, int64_t count) {
    if (kind == NodeKind::bytes) return Placed{0, count, nullptr};
    if (kind == NodeKind::loop) return build_loop(count);
    const auto places = WireList::read(in_, count, (word & kNarrowPlaces) != 0);
    if (!in_.ok()) return malformed("cut short");
    if (kind == NodeKind::blocks) return build_blocks(places, size_t(count));
    if (kind == NodeKind::sequence) return build_sequence(places, size_t(count));
    const auto starts = WireList::read(in_, count + 1, (word & kNarrowStarts) != 0);
    if (!in_.ok()) return malformed("cut short");
    return segments_from(places, starts, size_t(count));
  }

  Result<Placed> build_loop(int64_t count) {
    const Off stride = in_.get();
    const NodePtr child = known();
    if (!child) return malformed("a loop's child");
    // Laid so that the lowest byte comes out at 0, as the builder's offset must be.
    const Wide first = stride < 0 ? -Wide(count - 1) * stride : Wide(0);
    if (!fits(first) || !fits(first + child->span)) return malformed("a loop's reach");
    return make_loop(count, stride, placed(Off(first), child));
  }

  Result<Placed> build_blocks(const WireList& places, size_t n) {
    const NodePtr child = known();
    return child ? blocks_from(places, n, child) : malformed("an entry");
  }

  Result<Placed> build_sequence(const WireList& places, size_t n) {
    std::vector<Placed> items;
    for (size_t i = 0; i < n; ++i) {
      const NodePtr child = known();
      if (!child || !fits(places[i]) || !fits(places[i] + child->span))
        return malformed("an entry");
      items.push_back(placed(Off(places[i]), child));
    }
    return make_list(std::move(items));
  }

  NodePtr known() {
    const int64_t id = in_.get();
    return in_.ok() && id >= 0 && id < int64_t(nodes_.size()) ? nodes_[size_t(id)] : nullptr;
  }

  WireReader& in_;
  std::vector<NodePtr> nodes_;
};

}  // namespace

int64_t LoopTree::serialised_bytes() const {
  Distinct nodes;
  if (body_) nodes.add(body_);
  return (kHeaderWords + nodes.words()) * int64_t(sizeof(int64_t));
}

void LoopTree::serialise(std::vector<std::byte>& out) const {
  Distinct known;
  if (body_) known.add(body_);
  out.reserve(out.size() + size_t(kHeaderWords + known.words()) * sizeof(int64_t));
  WireWriter w(out);
  const int64_t count = int64_t(known.nodes().size());
  for (const int64_t word : {kFormat, true_lb_, lb_, extent_, count}) w.put(word);
  for (const Node* n : known.nodes()) put(w, *n, known);
}

Result<LoopTree> LoopTree::deserialise(std::span<const std::byte> in) {
  WireReader r(in);
  if (r.get() != kFormat) return malformed("not a loop tree of this version");
  const Off true_lb = r.get(), lb = r.get();
  const int64_t extent = r.get(), count = r.get();
  if (!r.ok()) return malformed("cut short");
  auto body = TreeReader(r).read(count);
  if (!body) return tl::unexpected(body.error());
  if (!r.rest().empty()) return malformed("bytes behind its end");
  const Placed root = placed(true_lb, *body);
  return TreeBuilder::make(root, lb, Wide(lb) + extent);
}

}  // namespace penstock::layout
