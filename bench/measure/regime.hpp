// The state of memory and disk before the clock starts, the same for every competitor.
#pragma once

#include <string>

#include "base/error.hpp"

namespace penstock::measure {

// Memory that was just used is handed out faster than memory that has gone cold. Touches and
// releases this worker's share of `node_bytes` (huge pages asked for), or of half of what is
// available where that is less; gives the bytes touched.
int64_t warm_memory(int64_t node_bytes, int workers_of_node);
// Leaves memory alone until the machine has taken freed pages back.
void cool_memory();

// Cold input comes from the device, not from the page cache.
Result<void> cool_file(const std::string& path);

// Template step 2: writes, syncs and removes a scratch file beside `file`.
Result<void> warm_disk(const std::string& file, int64_t bytes);

}  // namespace penstock::measure
