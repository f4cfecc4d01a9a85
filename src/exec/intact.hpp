// How much of a rank's own bytes came through, from the faults of those who wrote or read them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

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

// A disk that is full fails every later cycle from its first byte, and ranks tell each other every
// fault: one that is whole, from the first byte of its first cycle on, joins the fault before.
// `told`: the last cycle before it that anything is known of; nobody has bytes in those between.
// Where there are kMostFaults, what lies between the last one and this counts as missing, too.
inline constexpr size_t kMostFaults = 256;
void join(std::vector<WriterFault>& faults, const WriterFault& fault, int told, bool is_whole);

// The length of the longest prefix of `own` that no fault touches. `slices` are all of own's.
// `by_rank`: the same number of faults for each rank.
int64_t intact_prefix(const plan::Plan& plan, const layout::FileView& view, StreamRange own,
                      plan::Slices& slices, std::span<const WriterFault> by_rank, size_t per_rank);

}  // namespace penstock::exec
