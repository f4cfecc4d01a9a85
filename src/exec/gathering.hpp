// Where the ranks of a collective call meet: at its entry, with what each brings, and at its exit,
// with what each could not do. The same for writes and reads.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "comm/comm.hpp"
#include "exec/intact.hpp"
#include "layout/file_view.hpp"
#include "layout/loop_tree.hpp"
#include "plan/summary.hpp"

namespace penstock::exec {

// How many bytes tell a writer of a filetype (described_bytes()), counted once as long as calls
// keep to one filetype.
class DescriptionBytes {
 public:
  uint32_t of(const layout::LoopTree& filetype);

 private:
  Hash shape_ = 0;
  uint32_t bytes_ = 0;
};

// Collective. What all ranks bring; adds the time that it took.
plan::Crowd meet(comm::Comm& comm, const plan::Summary& mine, double& seconds);

// The greatest unit that divides `granule` and every place where what a rank brings begins or ends.
int64_t common_granule(int64_t granule, const layout::FileView& view, const plan::Summary& summary);

// The one that all ranks are told of, if only one can be.
const std::optional<Error>& worst_of(const std::optional<Error>& a, const std::optional<Error>& b);

// The same on every rank.
struct Verdict {
  ErrorClass agreed = ErrorClass::none;
  size_t faults_per_rank = 0;       // 0: all is well
  std::vector<WriterFault> faults;  // of all ranks, the same number of each
};

// Collective. One all-reduce when all is well; only after a failure everybody's faults are told to
// all.
Verdict conclude(comm::Comm& comm, const std::optional<Error>& mine,
                 std::span<const WriterFault> faults);

}  // namespace penstock::exec
