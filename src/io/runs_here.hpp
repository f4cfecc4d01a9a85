// For tests: whether this program can run a mechanism.
#pragma once

#include "io/mechanism.hpp"

namespace penstock::io {

inline bool runs_here(const Mechanism& m) {
#if defined(__SANITIZE_THREAD__)
  // Threads of the C library's aio start others behind the sanitizer's back, and it crashes when
  // these allocate.
  if (m.name == "posix_aio") return false;
#endif
  return m.unavailable == nullptr || m.unavailable().empty();
}

}  // namespace penstock::io
