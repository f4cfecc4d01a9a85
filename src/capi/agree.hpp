// Agreement on what a collective call of the C API returns: the same code on all ranks, and on one
// that failed itself its own words and errno.
#pragma once

#include "comm/comm.hpp"
#include "exec/abandon.hpp"

namespace penstock::capi {

// Collective.
inline Result<void> agree_in_own_words(comm::Comm& comm, const Result<void>& mine) {
  const Result<void> agreed = exec::agree_or_abandon(comm, mine);
  if (agreed || mine) return agreed;
  Error own = mine.error();
  own.error_class = agreed.error().error_class;
  return tl::unexpected(std::move(own));
}

}  // namespace penstock::capi
