// Offsets end at 2^63 - 1, where no file has a byte; views may go on.
#pragma once

#include "base/error.hpp"
#include "base/extent.hpp"
#include "layout/file_view.hpp"

namespace penstock::exec {

// REQUIRES a monotone view.
inline bool reaches_beyond_files(const layout::FileView& view, StreamRange range) {
  return !range.empty() && view.offset_of(range.end - 1) == kLastOff;
}

inline Error beyond_every_file(const char* operation) {
  return {ErrorClass::io, 0, operation, "the file view reaches beyond the offset 2^63 - 1"};
}

}  // namespace penstock::exec
