#include "io/block_reserve.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>

#include "base/file_limit.hpp"
#include "io/descriptor.hpp"
#include "io/in_place.hpp"

namespace penstock::io {
namespace {

constexpr Off kSector = 512;  // of st_blocks

// It looks for a place for each 4 KiB that a write brings; xfs does so for a folio. A device's node
// may lie there, too: before Linux 6.6 a device dropped what its page cache had there.
bool looks_for_each_block(int fd) noexcept {
  struct statfs found {};
  return ::fstatfs(fd, &found) == 0 && found.f_type == EXT4_SUPER_MAGIC && is_regular_file(fd);
}

// What is written again has its blocks.
Off settled_end(int fd) noexcept {
  struct stat file {};
  if (::fstat(fd, &file) != 0) return 0;
  return file.st_blocks * kSector >= file.st_size ? file.st_size : 0;
}

}  // namespace

void BlockReserve::before_writing(int fd, Extent where) noexcept {
  if (where.size() < kLeast) return;
  if (worth_ == Worth::unknown) look_at(fd);
  if (worth_ != Worth::yes || where.end <= settled_ || where.end > largest_file()) return;
  if (has(where)) return;
  if (::fallocate(fd, FALLOC_FL_KEEP_SIZE, where.begin, where.size()) == 0)
    remember(where);
  else if (is_for_good(errno))
    refuse();
}

bool BlockReserve::has(Extent where) noexcept {
  const std::lock_guard lock(mutex_);
  return reserved_.begin <= where.begin && where.end <= reserved_.end;
}

void BlockReserve::remember(Extent where) noexcept {
  const std::lock_guard lock(mutex_);
  reserved_ = where;
}

void BlockReserve::look_at(int fd) noexcept {
  settled_ = settled_end(fd);
  worth_ = looks_for_each_block(fd) ? Worth::yes : Worth::no;
}

}  // namespace penstock::io
