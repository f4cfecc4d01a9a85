// Loop trees to another rank and back. A tree travels as its distinct nodes, each after
// its children, so shared nodes travel once. Every node is rebuilt by the
// normalising builders, so that what arrives obeys every invariant or is refused.
#include <unordered_map>
#include <utility>

#include "layout/node.hpp"
#include "layout/wire.hpp"

namespace penstock::layout {
namespace {

constexpr int64_t kFormat = 0x31746c70;  // "plt1"

class TreeWriter {
 public:
  int64_t add(const Node& n) {
    if (const auto known = ids_.find(&n); known != ids_.end()) return known->second;
    std::vector<int64_t> words = {int64_t(n.kind), n.kind == NodeKind::bytes ? n.size : n.count};
    if (n.kind == NodeKind::loop) words.push_back(n.stride);
    words.insert(words.end(), n.displacements.begin(), n.displacements.end());
    if (n.kind == NodeKind::segments) words.insert(words.end(), n.starts.begin(), n.starts.end());
    if (n.child) words.push_back(add(*n.child));
    for (const NodePtr& c : n.children) words.push_back(add(*c));
    words_.insert(words_.end(), words.begin(), words.end());
    return ids_[&n] = int64_t(ids_.size());
  }

  int64_t count() const { return int64_t(ids_.size()); }
  const std::vector<int64_t>& words() const { return words_; }

 private:
  std::unordered_map<const Node*, int64_t> ids_;
  std::vector<int64_t> words_;
};

tl::unexpected<Error> malformed(const char* why) {
  return fail(ErrorClass::argument, "loop tree", std::string("malformed description: ") + why);
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
    const int64_t kind = in_.get();
    const int64_t count = in_.get();
    if (!in_.ok() || count < 1) return malformed("a count");
    if (kind < 0 || kind > int64_t(NodeKind::sequence)) return malformed("an unknown kind of node");
    auto built = build(NodeKind(kind), count);
    if (!built) return tl::unexpected(built.error());
    NodePtr node = built->empty() ? nullptr : node_of(*built);
    // What the builders changed was not what a writer had: its offset would be lost.
    if (!node || built->offset != 0 || int64_t(node->kind) != kind) return malformed("not normal");
    return node;
  }

  Result<Placed> build(NodeKind kind, int64_t count) {
    switch (kind) {
      case NodeKind::bytes:
        return Placed{0, count, nullptr};
      case NodeKind::loop:
        return build_loop(count);
      case NodeKind::segments:
        return build_segments(count);
      default:
        return build_list(kind, count);
    }
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

  Result<Placed> build_segments(int64_t count) {
    const auto displacements = in_.get(count);
    if (!in_.ok()) return malformed("cut short");
    const auto starts = in_.get(count + 1);
    if (!in_.ok()) return malformed("cut short");
    std::vector<Placed> items;
    items.reserve(displacements.size());
    for (size_t i = 0; i < displacements.size(); ++i) {
      const Wide length = Wide(starts[i + 1]) - starts[i];
      if (length < 1 || !fits(displacements[i] + length)) return malformed("a segment");
      items.push_back(Placed{displacements[i], int64_t(length), nullptr});
    }
    return make_list(std::move(items));
  }

  Result<Placed> build_list(NodeKind kind, int64_t count) {
    const auto displacements = in_.get(count);
    if (!in_.ok()) return malformed("cut short");
    std::vector<Placed> items;
    items.reserve(displacements.size());
    NodePtr child;
    for (const Off d : displacements) {
      if (!child || kind == NodeKind::sequence) child = known();
      if (!child || !fits(Wide(d) + child->span)) return malformed("an entry");
      items.push_back(placed(d, child));
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

void LoopTree::serialise(std::vector<std::byte>& out) const {
  TreeWriter nodes;
  if (body_) nodes.add(*body_);
  WireWriter w(out);
  for (const int64_t word : {kFormat, true_lb_, lb_, extent_, nodes.count()}) w.put(word);
  w.put(nodes.words());
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
