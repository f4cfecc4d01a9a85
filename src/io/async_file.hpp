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

}  // namespace penstock::io
