// Extents that touch in the file are one write.
#pragma once

#include <span>

#include "base/extent.hpp"

namespace penstock::io {

// Calls back for each run of extents that touch. REQUIRES that they are ascending and disjoint.
template <class Take>
void join_touching(std::span<const Extent> extents, Take take) {
  for (size_t i = 0; i < extents.size();) {
    Extent run = extents[i++];
    while (i < extents.size() && extents[i].begin == run.end) run.end = extents[i++].end;
    take(run);
  }
}

}  // namespace penstock::io
