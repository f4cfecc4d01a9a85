// Indexed types straight from where their arguments lie. Internal to src/layout.
#pragma once

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "layout/ascending_list.hpp"
#include "layout/list_node.hpp"
#include "layout/loop_tree.hpp"
#include "layout/node.hpp"

namespace penstock::layout {

// The lower and upper bound of children placed one by one.
struct BoundsSum {
  bool any = false;
  Wide lb = 0, ub = 0;

  void add(Wide displacement, int64_t count, const LoopTree& child) {
    // An empty type without bounds of its own has no typemap entry at all.
    if (count == 0 || (child.size() == 0 && child.extent() == 0)) return;
    place(displacement + child.lb(), child.extent());
    place(displacement + Wide(count - 1) * child.extent() + child.lb(), child.extent());
  }

 private:
  void place(Wide low, int64_t extent) {
    lb = any ? std::min(lb, low) : low;
    ub = any ? std::max(ub, low + extent) : low + extent;
    any = true;
  }
};

tl::unexpected<Error> bad_count(int64_t count);
tl::unexpected<Error> bad_bounds();
Result<Placed> moved(Placed item, Wide displacement);
Result<LoopTree> make_tree(const Result<Placed>& body, const BoundsSum& bounds);

// `count` children at a displacement in bytes; with none of them the displacement has no meaning.
struct IndexedBlock {
  Wide displacement = 0;
  int64_t count = 0;
};

// What all blocks have in common, which says how little has to be kept of each.
struct IndexedScan {
  BoundsSum bounds;
  int64_t blocks = 0;  // that are not empty
  int64_t count = 0;   // children of the last of these
  bool same_count = true;

  Result<void> add(const IndexedBlock& b, const LoopTree& child) {
    if (b.count < 0) return bad_count(b.count);
    if (b.count == 0) return {};
    if (!fits(b.displacement)) return bad_bounds();
    bounds.add(b.displacement, b.count, child);
    same_count = same_count && (blocks == 0 || b.count == count);
    count = b.count;
    ++blocks;
    return {};
  }
};

// Blocks of children that follow each other without a gap.
template <class At>
Result<Placed> indexed_stretches(size_t n, At at, const Placed& body) {
  for (size_t i = 0; i < n; ++i) {
    const IndexedBlock b = at(i);
    const Wide begin = b.displacement + body.offset, length = Wide(b.count) * body.length;
    if (b.count > 0 && !(fits(begin) && fits(length) && fits(begin + length))) return bad_bounds();
  }
  return make_stretches(n, [&](size_t i) {
    const IndexedBlock b = at(i);
    return b.count > 0 ? Stretch{Off(b.displacement + body.offset), b.count * body.length}
                       : Stretch{};
  });
}

// Blocks that are all alike. REQUIRES that one is not empty.
template <class At>
Result<Placed> indexed_copies(size_t n, At at, const Placed& block) {
  for (size_t i = 0; i < n; ++i) {
    const IndexedBlock b = at(i);
    if (b.count == 0) continue;
    if (auto there = moved(block, b.displacement); !there) return there;
  }
  return make_copies(n, block.node, [&](size_t i) {
    const IndexedBlock b = at(i);
    return b.count > 0 ? Stretch{Off(b.displacement + block.offset), block.size()} : Stretch{};
  });
}

template <class At>
Result<Placed> indexed_list(size_t n, At at, int64_t extent, const Placed& body) {
  std::vector<Placed> items;
  items.reserve(n);
  std::unordered_map<int64_t, Placed> blocks = {{1, body}};  // by count: equal ones share a node
  for (size_t i = 0; i < n; ++i) {
    const IndexedBlock b = at(i);
    if (b.count == 0) continue;
    const auto [block, is_new] = blocks.try_emplace(b.count);
    if (is_new) {
      auto made = make_loop(b.count, extent, body);
      if (!made) return made;
      block->second = *std::move(made);
    }
    auto item = moved(block->second, b.displacement);
    if (!item) return item;
    items.push_back(std::move(*item));
  }
  return make_list(std::move(items));
}

template <class At>
Result<Placed> indexed_body(size_t n, At at, int64_t extent, const Placed& body,
                            const IndexedScan& scan) {
  if (body.empty() || scan.blocks == 0) return Placed{};
  const bool single = scan.same_count && scan.count == 1;
  if (body.plain() && (single || extent == body.length)) return indexed_stretches(n, at, body);
  if (!scan.same_count) return indexed_list(n, at, extent, body);
  auto block = make_loop(scan.count, extent, body);
  if (!block) return block;
  return indexed_copies(n, at, *block);
}

// The tree that build_indexed() makes, where the child has no gaps or bounds of its own and the
// blocks ascend; otherwise nothing.
template <class At>
std::optional<LoopTree> ascending_indexed(size_t n, At at, const LoopTree& child) {
  if (!child.is_contiguous()) return std::nullopt;
  const auto known = [&, lb = uint64_t(child.lb()), size = child.size()](size_t i) {
    const IndexedBlock b = at(i);
    return Stretch{Off(uint64_t(b.displacement) + lb), int64_t(uint64_t(b.count) * uint64_t(size))};
  };
  const auto checked = [&, lb = child.lb(), size = child.size()](size_t i) {
    const IndexedBlock b = at(i);
    const Wide begin = b.displacement + lb, length = Wide(b.count) * size;
    const bool fit = fits(begin) && fits(length) && fits(begin + length);
    return fit ? known(i) : Stretch{};
  };
  const std::optional<Placed> list = make_ascending(n, checked, known);
  if (!list) return std::nullopt;
  auto tree = TreeBuilder::make(*list, list->offset, Wide(list->offset) + list->span());
  return tree ? std::optional(*std::move(tree)) : std::nullopt;
}

// Whatever the blocks are: see make_indexed().
template <class At>
Result<LoopTree> build_indexed(size_t n, At at, const LoopTree& child) {
  IndexedScan scan;
  for (size_t i = 0; i < n; ++i)
    if (Result<void> r = scan.add(at(i), child); !r) return tl::unexpected(r.error());
  const Placed body = TreeBuilder::body_of(child);
  return make_tree(indexed_body(n, at, child.extent(), body, scan), scan.bounds);
}

// at(i), for i < n, is an IndexedBlock; the same one whenever it is asked for.
template <class At>
Result<LoopTree> make_indexed(size_t n, At at, const LoopTree& child) {
  if (std::optional<LoopTree> list = ascending_indexed(n, at, child)) return *std::move(list);
  return build_indexed(n, at, child);
}

}  // namespace penstock::layout
