// Extents that touch in the file are one write.
#pragma once

#include <span>

#include "base/extent.hpp"

namespace penstock::io {

// The run that begins with the first of them. REQUIRES some, and that they are ascending and
// disjoint. `count`: how many it joins.
inline Extent first_run(std::span<const Extent> extents, size_t& count) noexcept {
  Extent run = extents.front();
  count = 1;
  while (count < extents.size() && extents[count].begin == run.end) run.end = extents[count++].end;
  return run;
}

// Calls back for each run of extents that touch.
template <class Take>
void join_touching(std::span<const Extent> extents, Take take) {
  for (size_t count = 0; !extents.empty(); extents = extents.subspan(count))
    take(first_run(extents, count));
}

}  // namespace penstock::io
