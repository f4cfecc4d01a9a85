// Copy kernels: between packed bytes and strided runs, with fixed-size copies
// for small blocks (1, 2, 4, 8, 12, 16, 24, 32, 64 bytes). Each moves exactly `n` stream
// bytes from the cursors' positions and leaves them behind what it moved.
// Runs may lie anywhere; source and destination memory must not overlap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "layout/cursor.hpp"

namespace penstock::layout {

// packed[0, n) = the runs of `from` over `memory`.
void gather(std::byte* packed, const std::byte* memory, Cursor& from, int64_t n);
// The runs of `to` over `memory` = packed[0, n). Offsets of `to` are relative to memory.
void scatter(std::byte* memory, Cursor& to, const std::byte* packed, int64_t n);
// From runs straight to runs, without a packed copy between.
void transfer(std::byte* to_memory, Cursor& to, const std::byte* from_memory, Cursor& from,
              int64_t n);

}  // namespace penstock::layout
