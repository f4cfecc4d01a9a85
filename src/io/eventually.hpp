// For tests: waits for what another thread is about to do, and gives up rather than hang.
#pragma once

#include <unistd.h>

namespace penstock::io {

// Whether it came true within about ten seconds; nothing may depend on how soon.
template <class Predicate>
bool eventually(Predicate&& is_true) {
  for (int tries = 0; tries < 10'000; ++tries) {
    if (is_true()) return true;
    ::usleep(1000);
  }
  return false;
}

}  // namespace penstock::io
