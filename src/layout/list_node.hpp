// Lists of very many entries become nodes without another list of them in between: the entries are
// asked for twice, once to see what they come to, and once to be put where they stay. Internal to
// src/layout.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "layout/node.hpp"

namespace penstock::layout {

// What a list comes to. Ends and sums in 128 bits: check() says whether they fit.
class ListScan {
 public:
  struct Entry {
    Off offset = 0;
    Wide span = 0, bytes = 0;
    int64_t granule = 0, blocks = 1;
  };

  // The next in stream order.
  void add(const Entry& e) {
    if (count_ == 0) first_ = last_ = e, low_ = e.offset;
    if (count_ > 0) compare(e);
    low_ = std::min(low_, e.offset);
    high_ = std::max(high_, Wide(e.offset) + e.span);
    bytes_ += e.bytes;
    blocks_ += e.blocks;
    divide(e.granule);
    last_ = e;
    ++count_;
  }

  int64_t count() const noexcept { return count_; }
  Off low() const noexcept { return low_; }
  Wide span() const noexcept { return high_ - low_; }
  Wide bytes() const noexcept { return bytes_; }
  Wide blocks() const noexcept { return blocks_; }
  int64_t granule() const noexcept { return granule_; }
  const Entry& first() const noexcept { return first_; }
  bool ascending() const noexcept { return ascending_; }
  bool same_bytes() const noexcept { return same_bytes_; }
  // The distance that all neighbours have, where there is one. REQUIRES count() >= 2.
  bool regular() const noexcept { return regular_ && fits(distance_); }
  Off distance() const noexcept { return Off(distance_); }

  Result<void> check() const;

 private:
  void compare(const Entry& e) {
    const Wide distance = Wide(e.offset) - last_.offset;
    ascending_ = ascending_ && distance >= last_.span;
    same_bytes_ = same_bytes_ && e.bytes == first_.bytes;
    regular_ = regular_ && (count_ == 1 || distance == distance_);
    distance_ = distance;
    // What divides all distances divides the distances from the lowest.
    divide(saturate(distance));
  }
  void divide(int64_t x) {
    if (granule_ == 0 || !is_multiple(x, granule_)) granule_ = gcd(granule_, x);
  }
  // REQUIRES of > 0. Most granules are powers of two, and a division takes as long as the rest.
  static bool is_multiple(int64_t x, int64_t of) noexcept {
    return (of & (of - 1)) == 0 ? (x & (of - 1)) == 0 : x % of == 0;
  }

  int64_t count_ = 0, granule_ = 0;
  Off low_ = 0;
  Wide high_ = INT64_MIN, bytes_ = 0, blocks_ = 0, distance_ = 0;
  Entry first_, last_;
  bool ascending_ = true, same_bytes_ = true, regular_ = true;
};

// The node of a list that was scanned. REQUIRES scan.check(), and the entries of the scan once
// more.
class ListFill {
 public:
  ListFill(const ListScan& scan, NodeKind kind);

  void add(Off offset, int64_t bytes) {
    node_.displacements.push_back(offset - low_);
    if (node_.kind == NodeKind::blocks) return;
    position_ += bytes;
    node_.starts.push_back(position_);
  }

  // Children, where the kind has any, are set by the caller, before done().
  Node& node() noexcept { return node_; }
  Result<Placed> done() &&;

 private:
  Off low_;
  Wide span_, bytes_;
  int64_t position_ = 0;
  Node node_;
};

// Adjacent bytes at an offset; none: it may lie anywhere.
struct Stretch {
  Off offset = 0;
  int64_t length = 0;
};

// use(offset, length) for those of at(0) to at(n - 1), joined where one begins at the end of the
// one before.
template <class At, class Use>
void for_each_joined(size_t n, At at, Use use) {
  Off begin = 0;
  Wide length = 0;
  for (size_t i = 0; i < n; ++i) {
    const Stretch s = at(i);
    if (length > 0 && s.length > 0 && begin + length != s.offset) {
      use(begin, length);
      length = 0;
    }
    if (length == 0) begin = s.offset;
    length += s.length;
  }
  if (length > 0) use(begin, length);
}

// Plain bytes: at(i), for i < n, is a Stretch; the same one whenever it is asked for. Normalised.
template <class At>
Result<Placed> make_stretches(size_t n, At at) {
  ListScan scan;
  for_each_joined(n, at, [&](Off offset, Wide length) {
    scan.add({offset, length, length, saturate(length)});
  });
  if (Result<void> r = scan.check(); !r) return tl::unexpected(r.error());
  if (scan.count() == 0) return Placed{};
  const Placed first{scan.first().offset, int64_t(scan.first().bytes), nullptr};
  if (scan.count() == 1) return first;
  const bool same = scan.same_bytes();
  if (same && scan.regular()) return make_loop(scan.count(), scan.distance(), first);
  ListFill fill(scan, same ? NodeKind::blocks : NodeKind::segments);
  if (same) fill.node().child = node_of(first);
  for_each_joined(n, at, [&](Off offset, Wide length) { fill.add(offset, int64_t(length)); });
  return std::move(fill).done();
}

// Copies of one node: at(i), for i < n, is where the lowest byte of one lies, and its length, none
// for one that is not there. Normalised. REQUIRES one that is, and that `node` is not plain bytes.
template <class At>
Result<Placed> make_copies(size_t n, const NodePtr& node, At at) {
  const auto each = [&](auto use) {
    for (size_t i = 0; i < n; ++i)
      if (const Stretch s = at(i); s.length > 0) use(s.offset);
  };
  ListScan scan;
  each([&](Off offset) {
    scan.add({offset, node->span, node->size, node->granule, node->blocks});
  });
  if (Result<void> r = scan.check(); !r) return tl::unexpected(r.error());
  const Placed first{scan.first().offset, 0, node};
  if (scan.count() == 1) return first;
  if (scan.regular()) return make_loop(scan.count(), scan.distance(), first);
  ListFill fill(scan, NodeKind::blocks);
  fill.node().child = node;
  each([&](Off offset) { fill.add(offset, node->size); });
  return std::move(fill).done();
}

}  // namespace penstock::layout
