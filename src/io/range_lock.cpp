#include "io/range_lock.hpp"

#include <fcntl.h>

#include "base/seeded_fault.hpp"

namespace penstock::io {
namespace {

constexpr Off kBehind = Off{1} << 62;

bool set_lock(int fd, short type, Extent where) noexcept {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = kBehind + where.begin;
  lock.l_len = where.size();
  return seeded_fault("range_shared") || ::fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

}  // namespace

// A length of 0 would be all that follows.
RangeLock::RangeLock(int fd, Extent where) noexcept : where_(where) {
  if (!where.empty() && where.end < kBehind && set_lock(fd, F_WRLCK, where)) fd_ = fd;
}

RangeLock::~RangeLock() {
  if (held()) set_lock(fd_, F_UNLCK, where_);
}

}  // namespace penstock::io
