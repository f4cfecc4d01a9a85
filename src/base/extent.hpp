// Half-open ranges of bytes: of a file (Extent) and of a rank's own data
// stream (StreamRange). Two types, so that one is never taken for the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace penstock {

using Off = int64_t;  // a file offset or a count of bytes; never negative in a file

// Offsets end there, and so does what would go further.
inline constexpr Off kLastOff = std::numeric_limits<Off>::max();
constexpr Off capped_sum(Off a, Off b) noexcept { return a > kLastOff - b ? kLastOff : a + b; }
constexpr Off capped_product(Off a, Off b) noexcept {
  Off product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kLastOff : product;
}

template <class Tag>
struct Range {
  Off begin = 0;
  Off end = 0;

  // At most so large: see kLastOff.
  static constexpr Range of(Off begin, Off size) noexcept {
    return {begin, capped_sum(begin, size)};
  }

  constexpr Off size() const noexcept { return end - begin; }
  constexpr bool empty() const noexcept { return end <= begin; }
  constexpr bool contains(Off x) const noexcept { return begin <= x && x < end; }
  constexpr bool overlaps(Range o) const noexcept { return !intersect(o).empty(); }
  constexpr Range intersect(Range o) const noexcept {
    const Off b = std::max(begin, o.begin), e = std::min(end, o.end);
    return b < e ? Range{b, e} : Range{b, b};
  }
  friend constexpr bool operator==(Range, Range) = default;
};

using Extent = Range<struct FileTag>;         // bytes of the file
using StreamRange = Range<struct StreamTag>;  // bytes of one rank's stream, through its file view

// Of both; an empty one counts for nothing.
constexpr Extent hull_of(Extent a, Extent b) noexcept {
  if (a.empty() || b.empty()) return a.empty() ? b : a;
  return {std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

constexpr Off align_down(Off x, Off unit) noexcept { return x - x % unit; }
constexpr Off align_up(Off x, Off unit) noexcept {
  return x % unit == 0 ? x : capped_sum(x, unit - x % unit);
}
constexpr Off divide_up(Off a, Off b) noexcept { return a / b + (a % b == 0 ? 0 : 1); }

}  // namespace penstock
