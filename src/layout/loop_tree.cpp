// Loop trees by MPI's constructors: bodies by the builders of node.cpp, bounds
// by MPI's rules (MPI-4.1, 5.1.6).
#include "layout/loop_tree.hpp"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>

#include "layout/indexed.hpp"

namespace penstock::layout {

tl::unexpected<Error> bad_count(int64_t count) {
  return fail(ErrorClass::argument, "datatype",
              "a count must not be negative, got " + std::to_string(count));
}

tl::unexpected<Error> bad_bounds() {
  return fail(ErrorClass::argument, "datatype", "its bounds exceed 64 bits");
}

Result<Placed> moved(Placed item, Wide displacement) {
  if (item.empty()) return item;
  const Wide offset = item.offset + displacement;
  if (!fits(offset) || !fits(offset + item.span())) return bad_bounds();
  item.offset = int64_t(offset);
  return item;
}

Result<LoopTree> make_tree(const Result<Placed>& body, const BoundsSum& bounds) {
  if (!body) return tl::unexpected(body.error());
  return TreeBuilder::make(*body, bounds.lb, bounds.ub);
}

Result<LoopTree> TreeBuilder::make(const Placed& body, Wide lb, Wide ub) {
  const Wide true_ub = Wide(body.offset) + body.span();
  if (!fits(lb) || !fits(ub) || !fits(ub - lb) || !fits(true_ub)) return bad_bounds();
  LoopTree t(nullptr);
  t.lb_ = int64_t(lb);
  t.extent_ = int64_t(ub - lb);
  if (!body.empty()) {
    t.body_ = node_of(body);
    t.size_ = body.size();
    t.true_lb_ = body.offset;
    t.true_ub_ = int64_t(true_ub);
  }
  const Hash place = mix(t.body_ ? t.body_->hash : 0, uint64_t(t.true_lb_));
  t.hash_ = mix(mix(place, uint64_t(t.lb_)), uint64_t(t.extent_));
  return t;
}

LoopTree LoopTree::bytes(int64_t n) {
  // Cannot fail: one bound is 0 and the other fits.
  const auto made = [](int64_t size) { return *TreeBuilder::make({0, size, nullptr}, 0, size); };
  // Every write has one, and it would be an allocation for each; outlives every destructor.
  static const LoopTree& one = *new LoopTree(made(1));
  return n == 1 ? one : made(n);
}

Result<LoopTree> LoopTree::contiguous(int64_t count, const LoopTree& child) {
  return strided(count, 1, child.extent(), child);
}

Result<LoopTree> LoopTree::strided(int64_t count, int64_t block_count, Off stride_bytes,
                                   const LoopTree& child) {
  if (count < 0) return bad_count(count);
  if (block_count < 0) return bad_count(block_count);
  BoundsSum bounds;
  if (count > 0) {
    bounds.add(0, block_count, child);
    bounds.add(Wide(count - 1) * stride_bytes, block_count, child);
  }
  auto block = make_loop(block_count, child.extent(), TreeBuilder::body_of(child));
  if (!block) return tl::unexpected(block.error());
  return make_tree(make_loop(count, stride_bytes, *block), bounds);
}

Result<LoopTree> LoopTree::indexed(std::span<const Block> blocks, const LoopTree& child) {
  return make_indexed(
      blocks.size(),
      [&](size_t i) {
        return IndexedBlock{blocks[i].displacement, blocks[i].count};
      },
      child);
}

Result<LoopTree> LoopTree::structure(std::span<const Field> fields) {
  BoundsSum bounds;
  std::vector<Placed> items;
  items.reserve(fields.size());
  for (const Field& f : fields) {
    if (f.count < 0) return bad_count(f.count);
    auto block = make_loop(f.count, f.child.extent(), TreeBuilder::body_of(f.child));
    if (block) block = moved(std::move(*block), f.displacement);
    if (!block) return tl::unexpected(block.error());
    bounds.add(f.displacement, f.count, f.child);
    items.push_back(std::move(*block));
  }
  return make_tree(make_list(std::move(items)), bounds);
}

Result<LoopTree> LoopTree::resized(const LoopTree& child, Off lb, int64_t extent) {
  return TreeBuilder::make(TreeBuilder::body_of(child), lb, Wide(lb) + extent);
}

bool LoopTree::is_contiguous() const noexcept {
  return body_ && body_->kind == NodeKind::bytes && true_lb_ == lb_ && extent_ == size_;
}

bool LoopTree::is_monotone(int64_t repetitions) const noexcept {
  if (!body_) return true;
  return body_->monotone && (repetitions <= 1 || extent_ >= body_->span);
}

int64_t LoopTree::granule() const noexcept { return body_ ? gcd(body_->granule, true_lb_) : 0; }

bool operator==(const LoopTree& a, const LoopTree& b) {
  return a.hash_ == b.hash_ && a.true_lb_ == b.true_lb_ && a.lb_ == b.lb_ &&
         a.extent_ == b.extent_ && equal(a.body_, b.body_);
}

namespace {

size_t memory_of(const Node* n, std::unordered_set<const Node*>& seen) {
  if (!n || !seen.insert(n).second) return 0;
  size_t bytes = sizeof(Node) + n->displacements.memory_bytes() + n->starts.memory_bytes() +
                 n->children.capacity() * sizeof(NodePtr) + memory_of(n->child.get(), seen);
  for (const NodePtr& c : n->children) bytes += memory_of(c.get(), seen);
  return bytes;
}

}  // namespace

size_t LoopTree::memory_bytes() const noexcept {
  std::unordered_set<const Node*> seen;
  return memory_of(body_.get(), seen);
}

int64_t LoopTree::blocks() const noexcept { return body_ ? body_->blocks : 0; }
int LoopTree::depth() const noexcept { return body_ ? body_->depth : 0; }

}  // namespace penstock::layout
