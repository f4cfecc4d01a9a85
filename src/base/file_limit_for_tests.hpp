#pragma once

#include <sys/resource.h>

#include "base/extent.hpp"

namespace penstock {

// RLIMIT_FSIZE while it lives, of which the kernel tells by SIGXFSZ, where that is not ignored.
class LargestFile {
 public:
  explicit LargestFile(Off bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{rlim_t(bytes), before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  LargestFile(const LargestFile&) = delete;
  ~LargestFile() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace penstock
