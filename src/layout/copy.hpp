// Copy kernels: between packed bytes and strided runs, with fixed-size copies
// for small blocks (1, 2, 4, 8, 12, 16, 24, 32, 64 bytes). Each moves exactly `n` stream
// bytes from the cursors' positions and leaves them behind what it moved.
// Runs may lie anywhere; source and destination memory must not overlap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "layout/cursor.hpp"

namespace penstock::layout {

// `origin`: the offset that memory[0] stands for, so that a file page can be the target of file
// offsets.

// packed[0, n) = the runs of `from` over `memory` (origin 0; offsets may be negative).
void gather(std::byte* packed, const std::byte* memory, Cursor& from, int64_t n);
// The runs of `to` over `memory` = packed[0, n).
void scatter(std::byte* memory, Off origin, Cursor& to, const std::byte* packed, int64_t n);
// From runs (origin 0) straight to runs, without a packed copy between.
void transfer(std::byte* to_memory, Off to_origin, Cursor& to, const std::byte* from_memory,
              Cursor& from, int64_t n);

}  // namespace penstock::layout
