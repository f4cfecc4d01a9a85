// Copies of small blocks of a length that the compiler knows.
#include "ring_copy.hpp"

#include <algorithm>
#include <cstring>

namespace penstock::peers {
namespace {

using layout::Run;
using measure::MemoryShape;

template <int64_t kBlock>
void copy_fixed(std::byte* to, const Run& run, const std::byte* from) {
  for (int64_t i = 0; i < run.count; ++i)
    std::memcpy(to + i * run.stride, from + i * kBlock, size_t(kBlock));
}

void copy_packed(std::byte* to, const Run& run, const std::byte* from) {
  switch (run.block) {
    case 4:
      return copy_fixed<4>(to, run, from);
    case 8:
      return copy_fixed<8>(to, run, from);
    case 16:
      return copy_fixed<16>(to, run, from);
    case 24:
      return copy_fixed<24>(to, run, from);
    case 32:
      return copy_fixed<32>(to, run, from);
    case 40:
      return copy_fixed<40>(to, run, from);
    case 64:
      return copy_fixed<64>(to, run, from);
    default:
      for (int64_t i = 0; i < run.count; ++i)
        std::memcpy(to + i * run.stride, from + i * run.block, size_t(run.block));
  }
}

// `n` kept bytes from `position` on, which may begin and end within a chunk of the memory.
void gather(std::byte* to, const MemoryShape& shape, const std::byte* window, int64_t position,
            int64_t n) {
  while (n > 0) {
    const int64_t chunk = std::min(n, shape.len_bytes - position % shape.len_bytes);
    const std::byte* from = window + shape.address(position);
    const int64_t whole = chunk == shape.len_bytes ? n / chunk : 1;
    // To the page's side it is packed, so block and stride change places.
    for (int64_t i = 0; i < whole; ++i)
      if (chunk == 8)
        std::memcpy(to + i * 8, from + i * shape.stride_bytes, 8);
      else
        std::memcpy(to + i * chunk, from + i * shape.stride_bytes, size_t(chunk));
    to += whole * chunk;
    position += whole * chunk;
    n -= whole * chunk;
  }
}

}  // namespace

void copy_runs(std::byte* page, Off origin, std::span<const Run> runs, const MemoryShape& shape,
               const std::byte* window, int64_t position) {
  for (const Run& run : runs) {
    std::byte* to = page + (run.offset - origin);
    if (shape.contiguous())
      copy_packed(to, run, window + position);
    else
      for (int64_t i = 0; i < run.count; ++i)
        gather(to + i * run.stride, shape, window, position + i * run.block, run.block);
    position += run.bytes();
  }
}

}  // namespace penstock::peers
