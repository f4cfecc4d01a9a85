// Test support: everything that a layout promises about one datatype, compared
// with its naive typemap. Each check returns what is wrong, or an empty string.
// Used by the property tests and by the fuzzer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "layout/copy.hpp"
#include "layout/coverage.hpp"
#include "layout/cursor.hpp"
#include "layout/file_view.hpp"
#include "layout/typemap_oracle.hpp"

namespace penstock::layout::oracle {

inline std::vector<Off> repeated(const Typemap& m, int64_t repetitions, Off base) {
  std::vector<Off> all;
  for (int64_t i = 0; i < repetitions; ++i) {
    for (const Off b : m.bytes) all.push_back(base + i * m.extent() + b);
  }
  return all;
}

inline bool ascending(const std::vector<Off>& bytes) {
  return std::adjacent_find(bytes.begin(), bytes.end(), std::greater_equal<>()) == bytes.end();
}

inline std::string check_bounds(const LoopTree& t, const Typemap& m) {
  if (t.size() != int64_t(m.bytes.size())) return "size";
  if (t.lb() != m.lb || t.extent() != m.extent()) return "bounds";
  for (const int64_t n : {1, 2, 3}) {
    if (t.is_monotone(n) != ascending(repeated(m, n, 0))) return "is_monotone";
  }
  if (m.bytes.empty()) return "";
  const auto [low, high] = std::minmax_element(m.bytes.begin(), m.bytes.end());
  return t.true_lb() == *low && t.true_ub() == *high + 1 ? "" : "true bounds";
}

// Takes runs of at most `piece` bytes up to `end` and compares each byte.
inline std::string check_walk(Cursor& c, const std::vector<Off>& bytes, int64_t end, int64_t piece,
                              int64_t granule) {
  while (c.position() < end) {
    const int64_t before = c.position();
    const Run r = c.next(std::min(piece, end - before));
    if (r.bytes() < 1 || r.bytes() > piece || c.position() != before + r.bytes()) return "run size";
    const bool whole_blocks = before == 0 && piece == INT64_MAX;
    if (whole_blocks && (r.offset % granule != 0 || r.block % granule != 0)) return "granule";
    for (int64_t i = 0; i < r.bytes(); ++i) {
      const Off at = r.offset + i / r.block * r.stride + i % r.block;
      if (at != bytes[size_t(before + i)]) return "offset of byte " + std::to_string(before + i);
    }
  }
  return "";
}

inline std::string check_cursor(const LoopTree& t, const Typemap& m, Choices& c) {
  const int64_t repetitions = c.between(0, 4);
  const Off base = c.between(-9, 90);
  const auto bytes = repeated(m, repetitions, base);
  const auto end = int64_t(bytes.size());
  Cursor cursor(t, base, repetitions);
  const int64_t granule = base == 0 && repetitions == 1 ? std::max<int64_t>(t.granule(), 1) : 1;
  if (auto bad = check_walk(cursor, bytes, end, INT64_MAX, granule); !bad.empty()) return bad;
  for (int i = 0; i < 4; ++i) {
    cursor.seek(end > 0 ? (c.byte() * 256 + c.byte()) % (end + 1) : 0);
    if (auto bad = check_walk(cursor, bytes, end, c.between(1, 40), 1); !bad.empty()) return bad;
  }
  return "";
}

inline std::string check_wire(const LoopTree& t) {
  std::vector<std::byte> wire;
  t.serialise(wire);
  const auto back = LoopTree::deserialise(wire);
  if (!back) return "deserialise: " + back.error().message();
  if (!(*back == t) || back->hash() != t.hash() || back->size() != t.size()) return "wire";
  return "";
}

inline std::string check_view(const LoopTree& t, const Typemap& m, Choices& c) {
  const Off displacement = c.between(0, 70);
  const auto view = FileView::make(displacement, 1, t);
  if (m.bytes.empty()) return view ? "a view without data" : "";
  if (!view) return "view refused";
  const auto bytes = repeated(m, 3, displacement);
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (view->offset_of(int64_t(i)) != bytes[i]) return "offset_of";
    if (view->is_monotone() && view->position_at(bytes[i]) != int64_t(i)) return "position_at";
  }
  if (view->is_monotone() != (ascending(bytes) && bytes.front() >= 0)) return "view is_monotone";
  if (!view->is_monotone()) return "";
  // Every offset of a small view, else some spread over it.
  const Off step = bytes.back() < 300 ? 1 : bytes.back() / 300 + 1;
  for (Off at = 0; at <= bytes.back(); at += step) {
    const auto below = std::lower_bound(bytes.begin(), bytes.end(), at) - bytes.begin();
    if (view->position_at(at) != below) return "position_at " + std::to_string(at);
  }
  return "";
}

// Memory that holds all of `bytes`, with its origin.
struct Arena {
  std::vector<std::byte> memory;
  Off low = 0;
  explicit Arena(const std::vector<Off>& bytes) {
    if (bytes.empty()) return;
    const auto [lo, hi] = std::minmax_element(bytes.begin(), bytes.end());
    low = *lo;
    memory.resize(size_t(*hi - *lo) + 1);
    for (size_t i = 0; i < memory.size(); ++i) memory[i] = std::byte(i * 7 + i / 251);
  }
  // A base that puts the lowest byte at memory's beginning.
  Off base() const { return -low; }
};

inline std::string check_copies(const LoopTree& t, const Typemap& m, const LoopTree& other,
                                const Typemap& other_map) {
  const auto from = repeated(m, 3, 0), to = repeated(other_map, 3, 0);
  const size_t n = std::min(from.size(), to.size());
  Arena source(from), target(to);
  std::vector<std::byte> packed(n), expected = target.memory;
  Cursor reader(t, source.base(), 3);
  gather(packed.data(), source.memory.data(), reader, int64_t(n));
  for (size_t i = 0; i < n; ++i) {
    if (packed[i] != source.memory[size_t(from[i] - source.low)]) return "gather";
    expected[size_t(to[i] - target.low)] = packed[i];
  }
  // Where the target names a byte twice, the copies may differ in which value stays.
  auto ordered = to;
  std::sort(ordered.begin(), ordered.end());
  const bool overlaps = !ascending(ordered);
  Arena again(to);
  Cursor writer(other, 0, 3), from_cursor(t, source.base(), 3), to_cursor(other, 0, 3);
  scatter(target.memory.data(), target.low, writer, packed.data(), int64_t(n));
  transfer(again.memory.data(), again.low, to_cursor, source.memory.data(), from_cursor,
           int64_t(n));
  if (overlaps) return "";
  if (target.memory != expected) return "scatter";
  return again.memory == expected ? "" : "transfer";
}

inline std::string check_coverage(const LoopTree& t, const Typemap& m, Choices& c) {
  const auto bytes = repeated(m, 2, 0);
  const Extent page{-c.between(0, 64), c.between(1, 255)};
  std::vector<bool> set(size_t(page.size()));
  for (const Off b : bytes) {
    if (page.contains(b)) set[size_t(b - page.begin)] = true;
  }
  Coverage coverage;
  if (!coverage.reset(page, 1)) return "coverage reset";
  Cursor cursor(t, 0, 2);
  coverage.add(cursor, int64_t(bytes.size()));
  std::vector<bool> seen(set.size());
  Off last = page.begin - 1;
  for (const Extent e : coverage.extents()) {
    if (e.begin <= last || e.empty()) return "extents touch";
    last = e.end;
    for (Off b = e.begin; b < e.end; ++b) seen[size_t(b - page.begin)] = true;
  }
  const bool complete = std::find(set.begin(), set.end(), false) == set.end();
  return seen == set && coverage.complete() == complete ? "" : "coverage";
}

enum class Aspect : uint8_t { cursor, wire, view, copies, coverage };
inline constexpr int kAspects = int(Aspect::coverage) + 1;

// Draws datatypes from the choices and checks what they promise in one respect.
inline std::string check_random_type(Choices& c, Aspect aspect) {
  Generator generate(c);
  const Sample sample = generate.type(4);
  const auto tree = decode(sample.description);
  if (!tree) return "decode: " + tree.error().message();
  if (auto bad = check_bounds(*tree, sample.map); !bad.empty()) return bad;
  switch (aspect) {
    case Aspect::cursor:
      return check_cursor(*tree, sample.map, c);
    case Aspect::wire:
      return check_wire(*tree);
    case Aspect::view:
      return check_view(*tree, sample.map, c);
    case Aspect::coverage:
      return check_coverage(*tree, sample.map, c);
    case Aspect::copies:
      break;
  }
  const Sample other = generate.type(2);
  const auto other_tree = decode(other.description);
  if (!other_tree) return "decode: " + other_tree.error().message();
  return check_copies(*tree, sample.map, *other_tree, other.map);
}

// Whatever a tree came from, walking it and asking it must be safe and consistent.
inline std::string check_any_tree(const LoopTree& t) {
  if (auto bad = check_wire(t); !bad.empty()) return bad;
  if (t.size() == 0) return "";
  const auto view = FileView::make(0, 1, t);
  if (!view) return "";
  Cursor cursor = view->cursor();
  for (const int64_t position : {int64_t{0}, t.size() / 3, t.size() - 1, INT64_MAX / 2}) {
    // Beyond the first tile the offsets of other views may leave 64 bits in either direction.
    if (position >= t.size() && !view->is_monotone()) continue;
    cursor.seek(position);
    const Off expected = view->offset_of(position);
    const Run r = cursor.next(std::min(1 + position % 1000, INT64_MAX - position));
    if (r.offset != expected) return "cursor and offset_of disagree";
    const bool in_file = view->is_monotone() && expected < INT64_MAX;
    if (in_file && view->position_at(expected) != position) return "position_at of offset_of";
  }
  return "";
}

inline std::string check_nonsense(Choices& c) {
  const auto tree = decode(nonsense(c));
  return tree ? check_any_tree(*tree) : "";
}

}  // namespace penstock::layout::oracle
