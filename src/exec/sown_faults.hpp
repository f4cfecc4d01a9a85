// Faults of a page on its way into the file, for `make check-the-checks`; in every
// other build this returns `dirty` as it is.
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "base/seeded_fault.hpp"
#include "io/mechanism.hpp"

namespace penstock::exec {

inline std::span<const Extent> sow_faults(const io::Lease& page, int cycle,
                                          std::span<const Extent> dirty,
                                          std::vector<Extent>& sown) {
  if (dirty.empty()) return dirty;
  [[maybe_unused]] const auto at = [&](Off offset) {
    return page.memory.data() + (offset - page.where.begin);
  };
  if (seeded_fault("byte_flipped"))
    *(page.packed ? page.memory.data() : at(dirty.front().begin)) ^= std::byte{1};
  if (seeded_fault("cycle_skipped") && cycle == 0) return {};
  if (seeded_fault("extent_shifted")) {
    sown.assign(dirty.begin(), dirty.end());
    ++sown.front().begin;
    return sown;
  }
  if (seeded_fault("holes_zero_filled") && !page.packed) {
    for (size_t i = 1; i < dirty.size(); ++i)
      std::memset(at(dirty[i - 1].end), 0, size_t(dirty[i].begin - dirty[i - 1].end));
    sown = {{dirty.front().begin, dirty.back().end}};
    return sown;
  }
  return dirty;
}

}  // namespace penstock::exec
