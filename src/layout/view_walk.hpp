// A file view in pieces that are asked for one by one: those that follow each other find the walk
// where they begin, and a view of adjacent bytes needs none.
#pragma once

#include <algorithm>
#include <optional>

#include "layout/cursor.hpp"
#include "layout/file_view.hpp"

namespace penstock::layout {

class ViewWalk {
 public:
  // REQUIRES a view that is_monotone().
  explicit ViewWalk(const FileView& view) : cursor_(view.cursor()) {
    if (view.is_contiguous()) first_ = view.offset_of(0);
  }

  // The longest run that starts at a stream position, of at most `most_bytes` bytes.
  // REQUIRES position >= 0, most_bytes >= 1, and that their sum is at
  // most INT64_MAX.
  Run run_at(int64_t position, int64_t most_bytes) {
    if (first_) return {capped_sum(*first_, position), most_bytes, most_bytes, 1};
    if (cursor_.position() != position) cursor_.seek(position);
    return cursor_.next(most_bytes);
  }

 private:
  Cursor cursor_;
  std::optional<Off> first_;  // of a view of adjacent bytes
};

}  // namespace penstock::layout
