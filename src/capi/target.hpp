// Where a call's bytes go: the arguments of a write as a view of the call's own.
#pragma once

#include <penstock/penstock.h>

#include "base/error.hpp"
#include "layout/file_view.hpp"

namespace penstock::capi {

// Bytes [position, position + bytes) of the stream through `view`, which is monotone.
struct Target {
  layout::FileView view;
  int64_t position_bytes = 0;
  int64_t bytes = 0;
};

inline constexpr int64_t kMostExtents = int64_t{1} << 24;

// Each fails with ErrorClass::argument and a text that names the argument and its value.
Result<Target> contiguous_target(int64_t offset_bytes, int64_t bytes);
Result<Target> strided_target(int64_t offset_bytes, int64_t block_bytes, int64_t stride_bytes,
                              int64_t count);
Result<Target> extents_target(const penstock_extent* extents, int64_t count);

}  // namespace penstock::capi
