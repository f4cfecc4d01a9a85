// Where a file may be stored into through a window (docs/decisions/0019-mmap.md).
#pragma once

#include <string_view>

namespace penstock::io {

// A store into a page whose block is reserved needs no other block there: no copies on write, no
// server.
struct InPlace {
  std::string_view type;
  int reserve_mode;  // fallocate's
};

// nullptr where it may.
const InPlace* in_place(std::string_view type);

// Of a call that no other window will be granted either.
bool is_for_good(int sys_errno);

}  // namespace penstock::io
