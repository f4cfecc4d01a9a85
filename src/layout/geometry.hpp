// Where a file may be cut. Two writers must never share a unit: pages are
// the unit of the page cache, stripes that of locks on parallel file systems,
// and on network file systems a *node* must own every page it touches alone,
// because two clients that write one page without locks lose data silently
// (seen with two NFS clients and 47001-byte records: 4 of 7 runs lost bytes),
// also when they do it in two calls (docs/decisions/0034).
#pragma once

#include <cstdint>

#include "base/extent.hpp"

namespace penstock::layout {

enum class Sharing : uint8_t {
  any,            // local file system: any rank may write any byte
  unit_per_node,  // several nodes, whose caches take locks: in a call a unit is written by one only
  unit_keeps_node,  // whose caches know nothing of each other: and by the same one in every call
};

struct Geometry {
  int64_t page_bytes = 4096;
  int64_t block_bytes = 4096;  // st_blksize of the file system, a power of two in practice
  int64_t stripe_bytes = 0;    // 0: not striped, or not known
  Sharing sharing = Sharing::any;

  // The unit at which file domains are cut: the least common multiple of page and block, or the
  // stripe where there is one (rounded up to a multiple of the page).
  int64_t unit() const noexcept;
  // The unit where stripes are left out of account.
  int64_t block() const noexcept { return Geometry{page_bytes, block_bytes}.unit(); }
};

}  // namespace penstock::layout
