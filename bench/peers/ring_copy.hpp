// One copy: from a rank's memory to the places of a page, by flattened runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "../measure/memory.hpp"
#include "base/extent.hpp"
#include "layout/cursor.hpp"

namespace penstock::peers {

// page[run offsets - origin] = the window's kept bytes from `position` on.
void copy_runs(std::byte* page, Off origin, std::span<const layout::Run> runs,
               const measure::MemoryShape& shape, const std::byte* window, int64_t position);

}  // namespace penstock::peers
