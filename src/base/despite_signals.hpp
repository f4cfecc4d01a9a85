// Room that is taken in spite of signals. Older kernels give all of it back when a signal
// interrupts fallocate(2) on tmpfs, so that a program with a timer, as profilers set one, would get
// no large room however often it asked. So who is interrupted asks for small pieces.
#pragma once

#include <algorithm>
#include <cerrno>

#include "base/extent.hpp"

namespace penstock {

inline constexpr Off kUninterruptedBytes = 256 * 1024;  // cleared in less than 0.1 ms

// `take` takes room for an extent, and gives 0 or an errno; so does this.
template <class Take>
int take_despite_signals(Extent where, Take&& take) {
  const int rc = take(where);
  if (rc != EINTR) return rc;
  for (Off at = where.begin; at < where.end; at += kUninterruptedBytes) {
    const Extent piece{at, std::min(at + kUninterruptedBytes, where.end)};
    int taken;
    do {
      taken = take(piece);
    } while (taken == EINTR);
    if (taken != 0) return taken;
  }
  return 0;
}

}  // namespace penstock
