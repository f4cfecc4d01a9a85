// The nodes of loop trees, and the builders that keep them normalised. Internal
// to src/layout: other layers see LoopTree and Cursor.
//
// Every node is placed by its lowest byte: offset 0 of a node is the lowest
// byte that it names, so that equal patterns at different displacements share one form.
#pragma once

#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "base/error.hpp"
#include "base/extent.hpp"
#include "base/hash.hpp"
#include "layout/loop_tree.hpp"
#include "layout/offset_list.hpp"

namespace penstock::layout {

// Offsets are multiplied and added in 128 bits and must fit 64 at the end: no sum of two products
// of 64-bit values can overflow on the way.
using Wide = __int128;

constexpr bool fits(Wide x) noexcept { return x >= INT64_MIN && x <= INT64_MAX; }

// Ends beyond int64 become its limits: the caller sees an offset that no file can have.
constexpr int64_t saturate(Wide x) noexcept {
  return x > INT64_MAX ? INT64_MAX : x < INT64_MIN ? INT64_MIN : int64_t(x);
}

// By magnitude; 0 only when both are 0. REQUIRES one of them to be other than INT64_MIN.
constexpr int64_t gcd(int64_t a, int64_t b) noexcept {
  const auto magnitude = [](int64_t x) { return x < 0 ? -uint64_t(x) : uint64_t(x); };
  return int64_t(std::gcd(magnitude(a), magnitude(b)));
}

enum class NodeKind : uint8_t {
  bytes,     // `size` adjacent bytes
  loop,      // `count` copies of `child`, `stride` apart in stream order
  blocks,    // copies of `child` at `displacements`
  segments,  // adjacent bytes of different lengths at `displacements`
  sequence,  // `children` at `displacements`
};

using NodePtr = std::shared_ptr<const Node>;

struct Node {
  NodeKind kind = NodeKind::bytes;
  bool monotone = true;  // ascending in stream order, no byte twice
  int depth = 1;
  int64_t size = 0;     // bytes of data
  int64_t span = 0;     // one past the highest byte
  int64_t granule = 0;  // divides every displacement and block length
  Hash hash = 0;

  int64_t blocks = 1;  // runs of adjacent bytes, as a list would have them; saturates

  int64_t count = 0;              // entries; 1 for bytes
  Off stride = 0;                 // loop
  NodePtr child;                  // loop, blocks
  OffsetList displacements;       // blocks, segments, sequence
  OffsetList starts;              // segments, sequence: stream position of each entry; the total
  std::vector<NodePtr> children;  // sequence

  // Where the first entry of a loop lies: a negative stride starts at the top.
  Off first() const noexcept { return stride < 0 ? -(count - 1) * stride : 0; }
  Off place(int64_t i) const noexcept {
    return kind == NodeKind::loop ? first() + i * stride : displacements[size_t(i)];
  }
  // Entry i's node, or nullptr when it is plain bytes of length(i).
  const Node* entry(int64_t i) const noexcept {
    if (kind == NodeKind::segments) return nullptr;
    const Node* n = kind == NodeKind::sequence ? children[size_t(i)].get() : child.get();
    return n->kind == NodeKind::bytes ? nullptr : n;
  }
  int64_t length(int64_t i) const noexcept {
    return starts.empty() ? child->size : starts[size_t(i) + 1] - starts[size_t(i)];
  }
  // The entry that holds stream byte `position`. REQUIRES 0 <= position < size, kind != bytes.
  int64_t entry_at(int64_t position) const noexcept;
  int64_t start_of(int64_t i) const noexcept {
    return starts.empty() ? i * child->size : starts[size_t(i)];
  }
};

// Deeper trees are refused, so that recursion over nodes is bounded.
inline constexpr int kMaxDepth = 128;

// A node whose lowest byte lies at `offset`. Plain bytes travel as a length without a node.
struct Placed {
  Off offset = 0;
  int64_t length = 0;  // of plain bytes, when there is no node
  NodePtr node;

  bool empty() const noexcept { return !node && length == 0; }
  bool plain() const noexcept { return !node && length > 0; }
  int64_t size() const noexcept { return node ? node->size : length; }
  int64_t span() const noexcept { return node ? node->span : length; }
  int depth() const noexcept { return node ? node->depth : 1; }
};

bool equal(const NodePtr& a, const NodePtr& b);

// The body of a tree, or of a child: never empty, plain bytes made a node.
NodePtr node_of(const Placed& placed);
Placed placed(Off offset, const NodePtr& node);

// `count` copies, `stride` apart, the first where `item` lies. Normalised.
Result<Placed> make_loop(int64_t count, Off stride, const Placed& item);
// The items one after the other in stream order. Empty ones vanish. Normalised.
Result<Placed> make_list(std::vector<Placed> items);
// The same node for numbers as it keeps them, which are looked at and not put together once more.
// Nothing where they are none of is_normal_list(), or too large: for the builders to judge.
NodePtr keep_list(OffsetList displacements, OffsetList starts, NodePtr child);

struct TreeBuilder {
  static Result<LoopTree> make(const Placed& body, Wide lb, Wide ub);
  static Placed body_of(const LoopTree& t) { return placed(t.true_lb_, t.body_); }
};

}  // namespace penstock::layout
