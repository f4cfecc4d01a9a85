// The state of files and disk before the clock starts, the same for every competitor; that of
// memory is node_memory.h's.
#pragma once

#include <string>

#include "base/error.hpp"

namespace penstock::measure {

// Cold input comes from the device, not from the page cache.
Result<void> cool_file(const std::string& path);

// Template step 2: writes, syncs and removes a scratch file beside `file`.
Result<void> warm_disk(const std::string& file, int64_t bytes);

}  // namespace penstock::measure
