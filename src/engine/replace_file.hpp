// Replacing a small file as a whole: readers see the old one or the new one, never half, and no
// link that somebody left in the way is followed.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace penstock::engine {

// Writes `text` to `directory`/`name`, mode 0600. Missing directories are made, mode 0700. A link
// at the target is replaced, not followed. REQUIRES a name without '/'.
Result<void> replace_file(const std::string& directory, const std::string& name,
                          std::string_view text);

}  // namespace penstock::engine
