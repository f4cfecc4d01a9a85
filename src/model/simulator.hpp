// Plays one output of gotwals-1995's models block by block. With buffer_bytes of 0 it is model 1;
// with a buffer that memory holds, model 2; with a larger one, model 3 (section 3.3): blocks for
// which memory has no room go to a paging disk and come back before they are written.
//
// The application sends its blocks in file order over one network, one at a time, each as soon as
// its I/O node has a frame for it. Network, output disks and paging disks work at the same time.
// The paper leaves open which block is paged out, which is written next, and when memory counts as
// unused; docs/decisions/0036-models.md says what was chosen.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "model/buffer_models.hpp"
#include "model/system.hpp"
#include "model/timeline.hpp"

namespace penstock::model {

struct Event {
  enum class Kind : uint8_t { arrived, written, paged_out, paged_in };
  double time_s = 0;  // when the transfer has ended
  Kind kind = Kind::arrived;
  int node = 0;
  int64_t block = 0;  // in file order
};
using Observer = std::function<void(const Event&)>;

struct Outcome {
  Times times;
  int64_t paged_out_bytes = 0;
  int64_t paged_in_bytes = 0;
  int64_t most_memory_bytes = 0;  // at any moment, of all I/O nodes
  int64_t most_paged_bytes = 0;
  std::vector<Moment> timeline;
};

// Deterministic, and in O(events * log(blocks that fit into memory)): at most four events a block
// in Order::memory. The observer is told of every event in the order of time.
Result<Outcome> simulate(const System& system, int64_t n_bytes, const Observer& observer = {});

}  // namespace penstock::model
