// Copies between packed bytes and strided runs. Small blocks of the common
// sizes are copied by fixed-size moves, which the compiler makes registers of.
#include "layout/copy.hpp"

#include <algorithm>
#include <cstring>

#include "layout/listed_blocks.hpp"

namespace penstock::layout {
namespace {

// `count` blocks from one strided place to another.
struct Lane {
  std::byte* to;
  const std::byte* from;
  int64_t to_stride;
  int64_t from_stride;
  int64_t count;
};

template <size_t N>
void copy_fixed(Lane c) {
  // By index, so that no pointer ever leaves what it points into by a stride too many.
  for (int64_t i = 0; i < c.count; ++i) {
    std::memcpy(c.to + i * c.to_stride, c.from + i * c.from_stride, N);
  }
}

void copy_any(Lane c, int64_t block) {
  for (int64_t i = 0; i < c.count; ++i) {
    std::memcpy(c.to + i * c.to_stride, c.from + i * c.from_stride, size_t(block));
  }
}

void copy_blocks(Lane c, int64_t block) {
  if (c.count == 1) return copy_any(c, block);
  switch (block) {
    case 1:
      return copy_fixed<1>(c);
    case 2:
      return copy_fixed<2>(c);
    case 4:
      return copy_fixed<4>(c);
    case 8:
      return copy_fixed<8>(c);
    case 12:
      return copy_fixed<12>(c);
    case 16:
      return copy_fixed<16>(c);
    case 24:
      return copy_fixed<24>(c);
    case 32:
      return copy_fixed<32>(c);
    case 64:
      return copy_fixed<64>(c);
    default:
      return copy_any(c, block);
  }
}

// A run that is used up piece by piece, because the other side's blocks end elsewhere.
class Rest {
 public:
  explicit Rest(const Run& run) : run_(run), left_(run.bytes()) {}

  int64_t left() const { return left_; }
  int64_t left_in_block() const { return run_.block - within_; }
  bool at_block() const { return within_ == 0; }
  Off offset() const { return run_.offset + index_ * run_.stride + within_; }
  const Run& run() const { return run_; }

  void skip(int64_t bytes) {
    left_ -= bytes;
    within_ += bytes;
    if (within_ < run_.block) return;
    if (within_ == run_.block) {  // the common case, without a division
      ++index_;
      within_ = 0;
      return;
    }
    index_ += within_ / run_.block;
    within_ %= run_.block;
  }

 private:
  Run run_;
  int64_t left_;
  int64_t index_ = 0;
  int64_t within_ = 0;
};

// The largest piece that both sides can give in one lane, copied; both move behind it.
void copy_piece(std::byte* to_memory, Rest& to, const std::byte* from_memory, Rest& from) {
  std::byte* d = to_memory + to.offset();
  const std::byte* s = from_memory + from.offset();
  const int64_t whole = std::min(to.left(), from.left());
  const int64_t to_block = to.left_in_block(), from_block = from.left_in_block();
  const int64_t block = std::min(to_block, from_block);
  Lane lane{d, s, to.run().stride, from.run().stride, 1};
  if (to.at_block() && from.at_block() && to_block == from_block) {
    lane.count = whole / block;
  } else if (from.at_block() && to_block >= 2 * from_block) {  // gather into one block
    lane.count = std::min(to_block, whole) / block;
    lane.to_stride = block;
  } else if (to.at_block() && from_block >= 2 * to_block) {  // scatter out of one block
    lane.count = std::min(from_block, whole) / block;
    lane.from_stride = block;
  }
  copy_blocks(lane, block);
  to.skip(lane.count * block);
  from.skip(lane.count * block);
}

}  // namespace

void gather(std::byte* packed, const std::byte* memory, Off origin, Cursor& from, int64_t n) {
  const auto take = [&packed, memory, origin](Off offset, int64_t length) {
    std::memcpy(packed, memory + (offset - origin), size_t(length));
    packed += length;
  };
  while ((n -= from.for_each_listed(n, take)) > 0) {
    const Run run = from.next(n);
    copy_blocks({packed, memory + (run.offset - origin), run.block, run.stride, run.count},
                run.block);
    packed += run.bytes();
    n -= run.bytes();
  }
}

void scatter(std::byte* memory, Off origin, Cursor& to, const std::byte* packed, int64_t n) {
  const auto put = [&packed, memory, origin](Off offset, int64_t length) {
    std::memcpy(memory + (offset - origin), packed, size_t(length));
    packed += length;
  };
  while ((n -= to.for_each_listed(n, put)) > 0) {
    const Run run = to.next(n);
    scatter(memory, origin, run, packed);
    packed += run.bytes();
    n -= run.bytes();
  }
}

void scatter_blocks(std::byte* memory, Off origin, const Run& to, const std::byte* packed) {
  copy_blocks({memory + (to.offset - origin), packed, to.stride, to.block, to.count}, to.block);
}

void transfer(std::byte* to_memory, Off to_origin, Cursor& to, const std::byte* from_memory,
              Off from_origin, Cursor& from, int64_t n) {
  while (n > 0) {
    Run taken = from.next(n);
    taken.offset -= from_origin;
    Rest source(taken);
    n -= source.left();
    while (source.left() > 0) {
      Run run = to.next(source.left());
      run.offset -= to_origin;
      Rest target(run);
      while (target.left() > 0) copy_piece(to_memory, target, from_memory, source);
    }
  }
}

}  // namespace penstock::layout
