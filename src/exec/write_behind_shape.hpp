// How many pages there are and how large, and who writes those that are full.
#pragma once

#include "exec/write_behind.hpp"

namespace penstock::exec {

constexpr int64_t kLeastSlots = 4;  // that a pool may fill whatever its bounds say

// Bytes of a node's pages where each of its ranks may have `asked` (0: the usual): of several nodes
// half of them, for the other half is of loads.
int64_t limit_of_node(const comm::Comm& comm, int64_t asked);
// The same on every rank.
PoolShape pool_shape(const comm::Comm& comm, const WriteBehindShape& asked,
                     const layout::Geometry& geometry);
Shipping::Shape shipping_shape(const comm::Comm& comm, const WriteBehindShape& asked,
                               const layout::Geometry& geometry);
FullPage writer_of_full(const comm::Comm& comm, const WriteBehindShape& asked);
// Pages in memory before a rank looks: those that are filled at a time, and one more.
int pages_ahead(const comm::Comm& comm);

}  // namespace penstock::exec
