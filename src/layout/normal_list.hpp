// Whether numbers that came from elsewhere are the list that the builders would make of them, seen
// by one look at each. Internal to src/layout.
#pragma once

#include "layout/node.hpp"

namespace penstock::layout {

// Of plain bytes, ascending, in multiples of one unit: at `displacements`, each of `child`'s bytes,
// or without a child of different lengths, from starts[i] to starts[i + 1] of the stream. False
// says that it is not so simple: the builders may make the same of it all the same.
bool is_normal_list(const OffsetList& displacements, const OffsetList& starts, const Node* child);

}  // namespace penstock::layout
