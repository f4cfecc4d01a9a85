// Blocks of plain bytes that ascend, as most irregular datatypes have them: two short passes in 64
// bits make their node, where the builders weigh each entry against all that a list may be. Neither
// has a branch for each block: whether one touches the next is a matter of chance. Internal to
// src/layout.
#pragma once

#include <bit>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "layout/list_node.hpp"
#include "layout/node.hpp"

namespace penstock::layout {

// What numbers have in common, as far as AND and OR tell.
class Common {
 public:
  // Of `x` where all bits of `mask` are set; of nothing where none is.
  void add(uint64_t x, uint64_t mask) {
    any_ |= x & mask;
    all_ &= x | ~mask;
  }
  bool same() const noexcept { return any_ == all_; }
  uint64_t any() const noexcept { return any_; }

 private:
  uint64_t any_ = 0, all_ = ~uint64_t{0};
};

// Walks over ascending blocks and joins those that touch, one block of the list at each step.
class Joining {
 public:
  explicit Joining(Stretch first) : begin_(first.offset), end_(first.offset + first.length) {}

  // All ones where `s` begins a block of its own, 0 where it goes on with the last one.
  uint64_t apart(Stretch s) const noexcept { return -uint64_t(s.offset != end_); }
  uint64_t length() const noexcept { return uint64_t(end_) - uint64_t(begin_); }
  uint64_t distance(Stretch next) const noexcept {
    return uint64_t(next.offset) - uint64_t(begin_);
  }
  Off begin() const noexcept { return begin_; }
  Off end() const noexcept { return end_; }
  void take(Stretch s) {
    begin_ = s.offset != end_ ? s.offset : begin_;
    end_ = s.offset + s.length;
  }

 private:
  Off begin_, end_;
};

// What such a list comes to.
struct AscendingScan {
  Off first = 0;
  size_t count = 0;  // of blocks that do not touch
  uint64_t span = 0, bytes = 0;
  bool same_length = false, same_distance = false;
  uint64_t digits = 0;  // of all lengths and distances
};

// at(i), for i < n, 1 <= n, is a Stretch whose end fits 64 bits. Nothing where a block is empty, or
// begins before the end of the one before.
template <class At>
std::optional<AscendingScan> scan_ascending(size_t n, At at) {
  const Stretch first = at(0);
  Joining joining(first);
  Common lengths, distances;
  uint64_t bytes = uint64_t(first.length);
  size_t count = 1;
  bool ascends = first.length > 0;
  for (size_t i = 1; i < n; ++i) {
    const Stretch s = at(i);
    ascends &= (s.length > 0) & (s.offset >= joining.end());
    const uint64_t apart = joining.apart(s);
    lengths.add(joining.length(), apart);
    distances.add(joining.distance(s), apart);
    count += apart & 1;
    bytes += uint64_t(s.length);
    joining.take(s);
  }
  if (!ascends) return std::nullopt;
  lengths.add(joining.length(), ~uint64_t{0});
  const uint64_t span = uint64_t(joining.end()) - uint64_t(first.offset);
  return AscendingScan{first.offset,
                       count,
                       span,
                       bytes,
                       lengths.same(),
                       distances.same(),
                       lengths.any() | distances.any()};
}

// The greatest that divides all lengths and distances. A power of two divides them all, and no
// greater one does: who is down to it need look no further, which is after a few.
template <class At>
int64_t unit_of(size_t n, At at, const AscendingScan& scan) {
  const uint64_t least = scan.digits & (~scan.digits + 1);
  uint64_t unit = 0;
  const auto divide = [&](uint64_t x) {
    if (unit == 0 || x % unit != 0) unit = std::gcd(unit, x);
  };
  Joining joining(at(0));
  for (size_t i = 1; i < n && unit != least; ++i) {
    const Stretch s = at(i);
    if (joining.apart(s) != 0) {
      divide(joining.length());
      divide(joining.distance(s));
    }
    joining.take(s);
  }
  if (unit != least) divide(joining.length());
  return int64_t(unit);
}

// put(k, place, start) for block k of the list, as often as it has parts: how far behind the first
// it lies, and where it begins in the stream.
template <class At, class Put>
void for_each_part(size_t n, At at, Put put) {
  const Stretch first = at(0);
  Joining joining(first);
  uint64_t position = uint64_t(first.length), start = 0;
  size_t block = 0;
  put(block, uint64_t{0}, start);
  for (size_t i = 1; i < n; ++i) {
    const Stretch s = at(i);
    const uint64_t apart = joining.apart(s);
    block += apart & 1;
    start = apart != 0 ? position : start;
    joining.take(s);
    put(block, uint64_t(joining.begin()) - uint64_t(first.offset), start);
    position += uint64_t(s.length);
  }
}

template <class At, class InUnits>
void fill_lists(size_t n, At at, const AscendingScan& scan, InUnits in_units, OffsetList& places,
                OffsetList& starts) {
  const std::span<uint32_t> place = places.take(scan.count);
  if (!starts.narrow()) {
    for_each_part(n, at, [&](size_t k, uint64_t offset, uint64_t) { place[k] = in_units(offset); });
    return;
  }
  const std::span<uint32_t> begin = starts.take(scan.count + 1);
  for_each_part(n, at, [&](size_t k, uint64_t offset, uint64_t start) {
    place[k] = in_units(offset);
    begin[k] = in_units(start);
  });
  begin[scan.count] = in_units(scan.bytes);
}

// The node that the builders make of these, where it is a plain list: nothing says that they are
// to be asked. `checked` says the same as `at`, and an empty one of what does not fit 64 bits.
template <class Checked, class At>
std::optional<Placed> make_ascending(size_t n, Checked checked, At at) {
  if (n < 2) return std::nullopt;
  const std::optional<AscendingScan> scan = scan_ascending(n, checked);
  if (!scan || scan->count < 2 || scan->span > uint64_t{INT64_MAX}) return std::nullopt;
  if (scan->same_length && scan->same_distance) return std::nullopt;  // a loop
  const int64_t unit = unit_of(n, at, *scan);
  OffsetList places(scan->count, unit, int64_t(scan->span)), starts;
  if (!places.narrow()) return std::nullopt;
  NodePtr child;
  if (scan->same_length)
    child = node_of({0, int64_t(scan->bytes / scan->count), nullptr});
  else
    starts = OffsetList(scan->count + 1, unit, int64_t(scan->bytes));
  if (std::has_single_bit(uint64_t(unit)))
    fill_lists(
        n, at, *scan,
        [by = std::countr_zero(uint64_t(unit))](uint64_t x) { return uint32_t(x >> by); }, places,
        starts);
  else
    fill_lists(
        n, at, *scan, [by = uint64_t(unit)](uint64_t x) { return uint32_t(x / by); }, places,
        starts);
  NodePtr node = keep_list(std::move(places), std::move(starts), std::move(child));
  if (!node) return std::nullopt;
  return Placed{scan->first, 0, std::move(node)};
}

}  // namespace penstock::layout
