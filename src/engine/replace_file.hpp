// Replacing a small file as a whole: readers see the old one or the new one, never half, and no
// link that somebody left in the way is followed.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace penstock::engine {

// Each missing directory of the path, mode 0700.
Result<void> make_directories(const std::string& path);

// Writes `text` to `directory`/`name`, mode 0600. A link at the target is replaced, not followed.
// REQUIRES a directory that is there, and a name without '/'.
Result<void> replace_file(const std::string& directory, const std::string& name,
                          std::string_view text);

}  // namespace penstock::engine
