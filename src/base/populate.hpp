// Pages of a shared mapping, before anybody stores into them: what has no room is an error here,
// and no signal there. From Linux 5.14 on; older kernels say EINVAL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock {

// Of this machine: 4 KiB, on AArch64 often 64.
int64_t memory_page_bytes() noexcept;
// Takes memory, or room in the file, and maps it. `pages` begin a page. 0, or the errno: EFAULT
// where a store would be a SIGBUS.
int populate_for_stores(std::span<std::byte> pages) noexcept;
// Whether whoever reads these pages reads memory, and meets no signal. `false`, too, where the
// kernel cannot tell, and of a device's memory.
bool are_readable(std::span<const std::byte> bytes) noexcept;
// Maps what is there already: a hint.
void map_populated(std::span<std::byte> pages) noexcept;

}  // namespace penstock
