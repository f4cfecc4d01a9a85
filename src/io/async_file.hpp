// The file of every asynchronous mechanism: pages are cut into pieces, at most `depth` of these are
// under way, and whatever is not a plain success is done again by blocking writes
// (docs/decisions/0018-direct-io.md).
#pragma once

#include <memory>

#include "io/async_queue.hpp"
#include "io/mechanism.hpp"

namespace penstock::io {

using OpenQueue = Result<std::unique_ptr<WriteQueue>> (*)(int depth);

// Where no queue can be had the file writes without one, and says so (degraded()).
Result<std::unique_ptr<MechanismFile>> open_async(const OpenRequest& request, int default_depth,
                                                  OpenQueue open_queue);

// The descriptor of an asynchronous mechanism.
inline Mechanism async_mechanism(std::string_view name, std::string_view summary, int default_depth,
                                 decltype(Mechanism::unavailable) unavailable,
                                 decltype(Mechanism::open) open) {
  return {.name = name,
          .summary = summary,
          .alignment_bytes = 1,
          .writes_file = true,
          .takes_direct = true,
          .default_depth = default_depth,
          .unavailable = unavailable,
          .open = open};
}

}  // namespace penstock::io
