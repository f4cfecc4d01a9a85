// How much of a rank's own bytes came through, from the faults of those who wrote or read them.
#pragma once

#include <cstdint>
#include <span>

#include "base/extent.hpp"
#include "layout/file_view.hpp"
#include "plan/plan.hpp"

namespace penstock::exec {

// What a writer could not put into the file, or get out of it, as all ranks learn it: in cycle
// `begin` the bytes from first_missing on, and all of the cycles behind it until `end`.
struct WriterFault {
  int64_t begin = 0, end = 0;  // begin == end: none
  Off first_missing = 0;
};

// The length of the longest prefix of `own` that no fault touches. `slices` are all of own's.
// `by_rank`: the same number of faults for each rank.
int64_t intact_prefix(const plan::Plan& plan, const layout::FileView& view, StreamRange own,
                      plan::Slices& slices, std::span<const WriterFault> by_rank, size_t per_rank);

}  // namespace penstock::exec
