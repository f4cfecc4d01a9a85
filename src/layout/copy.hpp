// Copy kernels: between packed bytes and strided runs, with fixed-size copies
// for small blocks (1, 2, 4, 8, 12, 16, 24, 32, 64 bytes). Each moves exactly `n` stream
// bytes from the cursors' positions and leaves them behind what it moved.
// Runs may lie anywhere; source and destination memory must not overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "layout/cursor.hpp"

namespace penstock::layout {

// `origin`: the offset that memory[0] stands for, so that a file page can be the target or the
// source of file offsets; 0 where it is left out.

// packed[0, n) = the runs of `from` over `memory` (offsets may be negative).
void gather(std::byte* packed, const std::byte* memory, Off origin, Cursor& from, int64_t n);
inline void gather(std::byte* packed, const std::byte* memory, Cursor& from, int64_t n) {
  gather(packed, memory, 0, from, n);
}
// The runs of `to` over `memory` = packed[0, n).
void scatter(std::byte* memory, Off origin, Cursor& to, const std::byte* packed, int64_t n);
// One run.
void scatter_blocks(std::byte* memory, Off origin, const Run& to, const std::byte* packed);
inline void scatter(std::byte* memory, Off origin, const Run& to, const std::byte* packed) {
  if (to.count == 1)
    std::memcpy(memory + (to.offset - origin), packed, size_t(to.block));
  else
    scatter_blocks(memory, origin, to, packed);
}
// From runs straight to runs, without a packed copy between.
void transfer(std::byte* to_memory, Off to_origin, Cursor& to, const std::byte* from_memory,
              Off from_origin, Cursor& from, int64_t n);
inline void transfer(std::byte* to_memory, Off to_origin, Cursor& to, const std::byte* from_memory,
                     Cursor& from, int64_t n) {
  transfer(to_memory, to_origin, to, from_memory, 0, from, n);
}

}  // namespace penstock::layout
