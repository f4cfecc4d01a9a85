// What a batch system lets a job's processes have: whoever takes more is killed, and not refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace penstock {

// Bytes of memory that this process's control group, of version 2 or 1, and all above it still let
// it take; what they keep of files counts as free. nullopt: nobody has set a limit. Reads /proc and
// /sys below `root`.
std::optional<int64_t> memory_left(const std::string& root = "");
// The same for calls that come often: that there is no limit is believed for a second.
std::optional<int64_t> memory_left_lately();

}  // namespace penstock
