// RLIMIT_FSIZE: how large a file this process may make. It holds for shared memory too, and who
// goes beyond it dies of SIGXFSZ unless the program says otherwise, so what is ours asks first.
#pragma once

#include <sys/resource.h>

#include "base/extent.hpp"

namespace penstock {

inline Off largest_file() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur > rlim_t(kLastOff)) return kLastOff;
  return Off(limit.rlim_cur);
}

}  // namespace penstock
