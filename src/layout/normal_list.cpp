#include "layout/normal_list.hpp"

#include <algorithm>
#include <numeric>
#include <span>

namespace penstock::layout {
namespace {

// Multiples of a list's unit.
using Units = std::span<const uint32_t>;

// Every block begins behind the end of the one before it. Without a branch, so that it is done for
// several at a time.
bool lies_apart(Units places, Units starts) {
  bool good = true;
  for (size_t i = 1; i < places.size(); ++i) {
    const uint32_t length = starts[i] - starts[i - 1];
    good &= starts[i] > starts[i - 1];
    good &= places[i] > places[i - 1] && places[i] - places[i - 1] > length;
  }
  return good && starts[places.size()] > starts[places.size() - 1];
}

bool lies_apart(Units places, uint64_t length) {
  bool good = true;
  for (size_t i = 1; i < places.size(); ++i)
    good &= places[i] > places[i - 1] && places[i] - places[i - 1] > length;
  return good;
}

// Of numbers that begin with 0.
bool has_equal_steps(Units numbers) {
  const auto differs = [&, step = numbers[1]](uint32_t a, uint32_t b) { return b - a != step; };
  return std::ranges::adjacent_find(numbers, differs) == numbers.end();
}

// Most have none after a few.
uint64_t common_divisor(uint64_t with, Units numbers) {
  for (size_t i = 0; i < numbers.size() && with != 1; ++i) with = std::gcd(with, numbers[i]);
  return with;
}

bool begins_narrow(const OffsetList& list) {
  return list.unit() > 0 && list.size() >= 2 && list.units()[0] == 0;
}

// The length of all blocks in units of `places`, 0 when they have none.
uint64_t length_in_units(const OffsetList& places, const Node& child) {
  const bool divides = child.kind == NodeKind::bytes && child.size % places.unit() == 0;
  return divides ? uint64_t(child.size / places.unit()) : 0;
}

bool is_segments(const OffsetList& places, const OffsetList& starts) {
  return begins_narrow(starts) && starts.unit() == places.unit() &&
         starts.size() == places.size() + 1 && lies_apart(places.units(), starts.units()) &&
         !has_equal_steps(starts.units()) &&
         common_divisor(common_divisor(0, starts.units()), places.units()) == 1;
}

bool is_blocks(const OffsetList& places, uint64_t length) {
  return length > 0 && lies_apart(places.units(), length) && !has_equal_steps(places.units()) &&
         common_divisor(length, places.units()) == 1;
}

}  // namespace

bool is_normal_list(const OffsetList& displacements, const OffsetList& starts, const Node* child) {
  if (!begins_narrow(displacements)) return false;
  return child != nullptr ? is_blocks(displacements, length_in_units(displacements, *child))
                          : is_segments(displacements, starts);
}

}  // namespace penstock::layout
