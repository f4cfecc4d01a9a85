// The unit at which file domains are cut.
#include "layout/geometry.hpp"

#include <algorithm>
#include <numeric>

namespace penstock::layout {

int64_t Geometry::unit() const noexcept {
  const int64_t page = std::max<int64_t>(page_bytes, 1);
  // A stripe that ends inside a page would give the page two writers.
  if (stripe_bytes > 0) return align_up(stripe_bytes, page);
  return std::lcm(page, std::max<int64_t>(block_bytes, 1));
}

}  // namespace penstock::layout
