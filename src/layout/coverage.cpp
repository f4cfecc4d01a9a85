// The bitmap of filled granules: whole words at a time for extents, one bit each for runs of single
// granules.
#include "layout/coverage.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>
#include <stdexcept>

#include "layout/listed_blocks.hpp"

namespace penstock::layout {
namespace {

constexpr int64_t kWordBits = 64;
constexpr int64_t kBlockWords = 64;  // a block's bit covers so many words: 512 bytes
constexpr int64_t kBlockBits = kBlockWords * kWordBits;

// Bits [begin, end) of one word. REQUIRES 0 <= begin < end <= 64.
uint64_t mask(int64_t begin, int64_t end) {
  return (~uint64_t{0} << begin) & (~uint64_t{0} >> (kWordBits - end));
}

void set_bits(std::vector<uint64_t>& bits, int64_t begin, int64_t end) {
  if (begin >= end) return;
  const int64_t first = begin / kWordBits, last = (end - 1) / kWordBits;
  const int64_t tail = (end - 1) % kWordBits + 1;
  if (first == last) {
    bits[size_t(first)] |= mask(begin % kWordBits, tail);
    return;
  }
  bits[size_t(first)] |= mask(begin % kWordBits, kWordBits);
  std::fill(bits.begin() + first + 1, bits.begin() + last, ~uint64_t{0});
  bits[size_t(last)] |= mask(0, tail);
}

// The first bit at `from` or behind it that is `wanted`, or `count` when there is none.
int64_t find_bit(const std::vector<uint64_t>& bits, int64_t from, int64_t count, bool wanted) {
  for (int64_t w = from / kWordBits; w * kWordBits < count; ++w) {
    uint64_t word = wanted ? bits[size_t(w)] : ~bits[size_t(w)];
    if (w == from / kWordBits) word &= ~uint64_t{0} << (from % kWordBits);
    if (word != 0) return std::min(count, w * kWordBits + std::countr_zero(word));
  }
  return count;
}

void grow(std::vector<uint64_t>& bits, int64_t words) {
  if (bits.size() < size_t(words)) bits.resize(size_t(words));
}

}  // namespace

Result<void> Coverage::reset(Extent extent, int64_t granule) {
  if (granule < 1 || extent.begin % granule != 0 || extent.end % granule != 0) {
    return fail(ErrorClass::argument, "coverage",
                "the granule must divide the extent's ends, got " + std::to_string(granule));
  }
  const int64_t granules = extent.empty() ? 0 : extent.size() / granule;
  clear();
  try {
    const int64_t blocks = divide_up(granules, kBlockBits);
    grow(bits_, blocks * kBlockWords);
    grow(touched_, divide_up(blocks, kWordBits));
  } catch (const std::bad_alloc&) {
    return fail(ErrorClass::no_memory, "coverage", std::to_string(granules) + " granules");
  } catch (const std::length_error&) {
    return fail(ErrorClass::no_memory, "coverage", std::to_string(granules) + " granules");
  }
  extent_ = extent;
  granule_ = granule;
  return {};
}

// Calls visit(begin, end) for each run of touched blocks.
template <class Visit>
void Coverage::for_each_touched(Visit&& visit) const {
  const auto count = int64_t(touched_.size()) * kWordBits;
  for (int64_t begin = 0; (begin = find_bit(touched_, begin, count, true)) < count;) {
    const int64_t end = find_bit(touched_, begin, count, false);
    visit(begin, end);
    begin = end;
  }
}

void Coverage::clear() {
  for_each_touched([this](int64_t begin, int64_t end) {
    std::fill(bits_.begin() + begin * kBlockWords, bits_.begin() + end * kBlockWords, 0);
  });
  std::ranges::fill(touched_, 0);
}

int64_t Coverage::granules_looked_at() const noexcept {
  int64_t blocks = 0;
  for (const uint64_t word : touched_) blocks += std::popcount(word);
  return blocks * kBlockBits;
}

void Coverage::add_granules(int64_t begin, int64_t end) {
  set_bits(bits_, begin, end);
  if (begin < end) set_bits(touched_, begin / kBlockBits, (end - 1) / kBlockBits + 1);
}

void Coverage::add(Extent e) {
  const Extent in = e.intersect(extent_);
  if (in.empty()) return;
  add_granules((in.begin - extent_.begin) / granule_, (in.end - extent_.begin) / granule_);
}

void Coverage::add(const Run& r) {
  const Off last = r.offset + (r.count - 1) * r.stride;
  const Extent all{std::min(r.offset, last), std::max(r.offset, last) + r.block};
  const bool inside = extent_.begin <= all.begin && all.end <= extent_.end;
  if (!inside || r.count == 1 || r.block != granule_) {
    for (int64_t i = 0; i < r.count; ++i) {
      const Off begin = r.offset + i * r.stride;
      add(Extent{begin, begin + r.block});
    }
    return;
  }
  int64_t bit = (r.offset - extent_.begin) / granule_;
  const int64_t step = r.stride / granule_;
  if (std::abs(step) > kBlockBits) return add_far(bit, step, r.count);
  // No block between the first and the last is left out.
  set_bits(touched_, (all.begin - extent_.begin) / granule_ / kBlockBits,
           (all.end - 1 - extent_.begin) / granule_ / kBlockBits + 1);
  for (int64_t i = 0; i < r.count; ++i, bit += step) {
    bits_[size_t(bit / kWordBits)] |= uint64_t{1} << (bit % kWordBits);
  }
}

// Single granules, each in a block of its own.
void Coverage::add_far(int64_t bit, int64_t step, int64_t count) {
  for (int64_t i = 0; i < count; ++i, bit += step) add_granules(bit, bit + 1);
}

void Coverage::add(Cursor& cursor, int64_t n) {
  const auto block = [this](Off begin, int64_t length) { add(Extent{begin, begin + length}); };
  while ((n -= cursor.for_each_listed(n, block)) > 0) {
    const Run run = cursor.next(n);
    add(run);
    n -= run.bytes();
  }
}

std::span<const Extent> Coverage::extents() {
  extents_.clear();
  for_each_touched([this](int64_t begin, int64_t end) {
    collect(begin * kBlockBits, std::min(end * kBlockBits, granules()));
  });
  return extents_;
}

// What is covered of granules [begin, end), behind and before which none is.
void Coverage::collect(int64_t begin, int64_t end) {
  while ((begin = find_bit(bits_, begin, end, true)) < end) {
    const int64_t behind = find_bit(bits_, begin, end, false);
    extents_.push_back({extent_.begin + begin * granule_, extent_.begin + behind * granule_});
    begin = behind;
  }
}

bool Coverage::complete() const noexcept {
  return find_bit(bits_, 0, granules(), false) == granules();
}

}  // namespace penstock::layout
