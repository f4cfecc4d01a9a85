// Agreement on errors: the greatest severity of all ranks, on every rank.
#include "base/seeded_fault.hpp"
#include "comm/comm.hpp"

namespace penstock::comm {

Result<void> agree(Comm& comm, Result<void> mine) {
  const int64_t own = mine ? 0 : int64_t(mine.error().error_class);
  int64_t worst[1] = {own};
  if (Result<void> r = comm.all_max(worst); !r) return r;
  if (seeded_fault("agreement_swallowed") && comm.rank() == comm.size() - 1) return {};
  if (worst[0] == own) return mine;
  return fail(ErrorClass(worst[0]), "agree", "another rank failed");
}

}  // namespace penstock::comm
