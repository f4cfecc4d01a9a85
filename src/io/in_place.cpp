#include "io/in_place.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>

#ifndef FALLOC_FL_UNSHARE_RANGE  // headers of Linux before 4.9
#define FALLOC_FL_UNSHARE_RANGE 0x40
#endif

namespace penstock::io {

// Files of xfs may share blocks with a clone until they are told not to.
const InPlace* in_place(std::string_view type) {
  static constexpr std::array kInPlace = {
      InPlace{"ext4", FALLOC_FL_KEEP_SIZE},
      InPlace{"xfs", FALLOC_FL_KEEP_SIZE | FALLOC_FL_UNSHARE_RANGE},
      InPlace{"tmpfs", FALLOC_FL_KEEP_SIZE},
  };
  const auto* const found = std::ranges::find(kInPlace, type, &InPlace::type);
  return found == kInPlace.end() ? nullptr : found;
}

bool is_for_good(int sys_errno) {
  constexpr std::array kLacking = {EOPNOTSUPP, ENOSYS, EINVAL, ENODEV, EACCES, EPERM};
  return std::ranges::find(kLacking, sys_errno) != kLacking.end();
}

}  // namespace penstock::io
