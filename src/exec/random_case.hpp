// For tests: random collective writes, each described twice, as segments for the oracle and as
// trees for the engine. Values belong to file offsets, so ranks may overlap.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "layout/file_view.hpp"

namespace penstock::exec {

inline constexpr std::byte kBackground{0xEE};
inline constexpr size_t kBackgroundBytes = 20000;  // what the file holds before

// What belongs at a file offset, whoever writes it; never the background, nor the zero of a hole.
[[gnu::always_inline]] inline std::byte value_at(Off offset) {
  const auto value = std::byte((uint64_t(offset) * 0x9e3779b97f4a7c15u) >> 56);
  return value == kBackground || value == std::byte{0} ? std::byte{1} : value;
}

// The values of `n` offsets. A plain loop: tests are compiled without optimisation, and call this
// for every byte they write.
inline void fill_values(std::byte* out, Off offset, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = value_at(offset + i);
}

inline std::vector<std::byte> bytes_at(Off offset, int64_t n) {
  std::vector<std::byte> bytes(size_t(std::max<int64_t>(n, 0)));
  fill_values(bytes.data(), offset, n);
  return bytes;
}

struct Segment {
  Off offset;
  int64_t bytes;
};

// One rank's call, described twice: as segments (for the oracle) and as trees (for the engine).
struct RankCase {
  layout::FileView view;
  StreamRange range;
  std::vector<Segment> segments;  // of the range, in stream order
  layout::LoopTree memory_type = layout::LoopTree::bytes(1);
  int64_t memory_count = 0;
  std::vector<std::byte> memory;
};

using Random = std::mt19937_64;
inline int64_t draw(Random& random, int64_t lo, int64_t hi) {
  return std::uniform_int_distribution<int64_t>(lo, hi)(random);
}

// An ascending list of blocks of one filetype; regular, irregular, or one block.
inline std::vector<Segment> draw_blocks(Random& random) {
  const int64_t unit = int64_t{1} << draw(random, 0, 12);
  std::vector<Segment> blocks;
  Off at = draw(random, 0, 3) * unit;
  const bool regular = draw(random, 0, 1) == 0;
  const int64_t n = draw(random, 1, 20), bytes = unit * draw(random, 1, 4),
                gap = unit * draw(random, 0, 5);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t b = regular ? bytes : draw(random, 1, 3 * unit);
    blocks.push_back({at, b});
    at += b + (regular ? gap : draw(random, 0, 4 * unit));
  }
  return blocks;
}

inline layout::LoopTree tree_of(const std::vector<Segment>& blocks, int64_t extent) {
  std::vector<layout::LoopTree::Block> list;
  for (const Segment& s : blocks) list.push_back({s.offset, s.bytes});
  return *layout::LoopTree::resized(*layout::LoopTree::indexed(list, layout::LoopTree::bytes(1)), 0,
                                    extent);
}

// The segments of a stream range, tile by tile, byte counting only: no cursor.
inline std::vector<Segment> expand(const std::vector<Segment>& blocks, Off displacement,
                                   int64_t extent, StreamRange range) {
  std::vector<Segment> out;
  int64_t position = 0;
  for (int64_t tile = 0; position < range.end; ++tile)
    for (const Segment& b : blocks) {
      const int64_t begin = std::max(position, range.begin),
                    end = std::min(position + b.bytes, range.end);
      if (begin < end)
        out.push_back({displacement + tile * extent + b.offset + (begin - position), end - begin});
      position += b.bytes;
    }
  return out;
}

// Memory that is contiguous, or scattered with gaps and in reverse order.
inline void draw_memory(Random& random, RankCase& c) {
  int64_t n = 0;
  for (const Segment& s : c.segments) n += s.bytes;
  std::vector<std::byte> stream(static_cast<size_t>(n));
  std::byte* out = stream.data();
  for (const Segment& s : c.segments) {
    fill_values(out, s.offset, s.bytes);
    out += s.bytes;
  }
  if (n == 0 || draw(random, 0, 1) == 0) {
    c.memory_count = n;
    c.memory = stream;
    return;
  }
  const int64_t block = std::max<int64_t>(1, std::min<int64_t>(n, draw(random, 1, 5000)));
  std::vector<layout::LoopTree::Block> blocks;
  Off at = 0;
  for (int64_t p = 0; p < n; p += block, at += block + 7)
    blocks.push_back({at, std::min(block, n - p)});
  if (draw(random, 0, 1) == 0)  // backwards in memory
    for (auto& b : blocks) b.displacement = at - b.displacement;
  c.memory.assign(size_t(at + block + 7), kBackground);
  int64_t p = 0;
  for (const auto& b : blocks) {
    std::memcpy(c.memory.data() + b.displacement, stream.data() + p, size_t(b.count));
    p += b.count;
  }
  c.memory_type = *layout::LoopTree::indexed(blocks, layout::LoopTree::bytes(1));
  c.memory_count = 1;
}

inline RankCase draw_rank(Random& random, int rank, int ranks, bool interleave) {
  RankCase c;
  std::vector<Segment> blocks = draw_blocks(random);
  const int64_t span = blocks.back().offset + blocks.back().bytes;
  int64_t extent = span + draw(random, 0, 2) * 100;
  Off displacement = draw(random, 0, 5000);
  if (interleave) {  // ranks take turns: block i of rank r at (i * ranks + r) * bytes
    const int64_t bytes = int64_t{1} << draw(random, 0, 13);
    blocks = {{0, bytes}};
    extent = bytes * ranks;
    displacement = 512 + rank * bytes;
  }
  int64_t size = 0;
  for (const Segment& b : blocks) size += b.bytes;
  const int64_t begin = draw(random, 0, 2 * size),
                bytes = draw(random, 0, 5) == 0 ? 0 : draw(random, 1, 6 * size);
  c.range = {begin, begin + bytes};
  c.view = *layout::FileView::make(displacement, 1, tree_of(blocks, extent));
  c.segments = expand(blocks, displacement, extent, c.range);
  draw_memory(random, c);
  return c;
}

inline std::vector<std::byte> expectation(const std::vector<RankCase>& ranks) {
  std::vector<std::byte> bytes(kBackgroundBytes, kBackground);
  for (const RankCase& c : ranks)
    for (const Segment& s : c.segments) {
      if (bytes.size() < size_t(s.offset + s.bytes)) bytes.resize(size_t(s.offset + s.bytes));
      fill_values(bytes.data() + s.offset, s.offset, s.bytes);
    }
  return bytes;
}

// How far a rank's own bytes are in the file.
inline int64_t prefix_in_file(const RankCase& c, const std::vector<std::byte>& file) {
  int64_t prefix = 0;
  for (const Segment& s : c.segments)
    for (Off at = s.offset; at < s.offset + s.bytes; ++at, ++prefix)
      if (size_t(at) >= file.size() || file[size_t(at)] != value_at(at)) return prefix;
  return prefix;
}

inline void fill_with_background(const std::string& path) {
  const std::string text(kBackgroundBytes, char(kBackground));
  std::ofstream(path, std::ios::binary).write(text.data(), std::streamsize(text.size()));
}

// Ranks that bring bytes for one place of a shared page copy them at once. Whose stay is undefined,
// and here they are the same; but ThreadSanitizer calls it a race, which it is.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kMayOverlap = false;
#else
inline constexpr bool kMayOverlap = true;
#endif

// A team's call: ranks that take turns, or each its own way.
inline std::vector<RankCase> draw_team(Random& random, int ranks, bool interleave) {
  const auto shared_seed = random();
  std::vector<RankCase> cases;
  for (int r = 0; r < ranks; ++r) {
    Random own(interleave ? shared_seed : random());
    cases.push_back(draw_rank(own, r, ranks, interleave));
  }
  return cases;
}

// A call of a team whose ranks share pages.
inline std::vector<RankCase> draw_writers(Random& random, int ranks, bool interleave) {
  return draw_team(random, ranks, interleave || !kMayOverlap);
}

}  // namespace penstock::exec
