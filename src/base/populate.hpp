// Pages of a shared mapping, before anybody stores into them: what has no room is an error here,
// and no signal there. From Linux 5.14 on; older kernels say EINVAL.
#pragma once

#include <cstddef>
#include <span>

namespace penstock {

// Takes memory, or room in the file, and maps it. `pages` begin a page. 0, or the errno: EFAULT
// where a store would be a SIGBUS.
int populate_for_stores(std::span<std::byte> pages) noexcept;
// Maps what is there already: a hint.
void map_populated(std::span<std::byte> pages) noexcept;

}  // namespace penstock
