// A range of a file that is this open file's alone for a moment, among those that ask: an OFD lock
// of fcntl(2), which the kernel takes back when the last process has closed it. What must not meet
// in a range asks for it: writes past the page cache while memory is cold, and pages of a trail
// that are made ready there before anything is stored (docs/decisions/0078-cold-memory.md).
#pragma once

#include "base/extent.hpp"

namespace penstock::io {

class RangeLock {
 public:
  // Never waits. Not held where another open file has a part of the range, or the file system has
  // no locks. The lock itself lies 2^62 bytes behind, so that of a program's own locks it meets
  // those of a whole file alone. REQUIRES that `fd` is open for writing, stays open
  // as long as this, and is not asked for the same bytes by another thread.
  RangeLock(int fd, Extent where) noexcept;
  ~RangeLock();
  RangeLock(const RangeLock&) = delete;
  RangeLock& operator=(const RangeLock&) = delete;

  bool held() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
  Extent where_;
};

}  // namespace penstock::io
