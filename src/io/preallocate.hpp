// Room on the device for a file, beforehand.
#pragma once

#include <string>

#include "base/error.hpp"
#include "base/extent.hpp"

namespace penstock::io {

// The first `bytes` of the file have blocks when this succeeds, and it is as long at least; what is
// in it stays as it is. ErrorClass::unsupported where the file system takes no room beforehand.
// `path` is for the message.
Result<void> preallocate(int fd, Off bytes, const std::string& path);

}  // namespace penstock::io
