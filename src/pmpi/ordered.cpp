#include "pmpi/ordered.hpp"

#include <cstdint>
#include <limits>
#include <mutex>

#include "comm/mpi_comm.hpp"
#include "exec/abandon.hpp"
#include "pmpi/library_call.hpp"
#include "pmpi/real.hpp"

namespace penstock::pmpi {
namespace {

// Where the shared pointer is, by one rank, which asks the library for all. -1: it cannot say.
MPI_Offset asked_for_all(MPI_File handle, OpenFile& file) {
  if (file.file->comm().rank() != 0) return 0;
  MPI_Offset at = -1;
  const int rc =
      quietly(handle, file, [&] { return PENSTOCK_REAL(get_position_shared)(handle, &at); });
  return rc == MPI_SUCCESS ? at : -1;
}

// What this rank brings; wrong arguments move nothing.
int64_t brought(const WriteArguments& a, OpenFile& file) {
  const std::lock_guard lock(file.alone);
  return etypes_of(a, file).value_or(0);
}

// So few that the sum of all ranks' is a number.
bool can_be_summed(int64_t etypes, int ranks) {
  return etypes <= std::numeric_limits<int64_t>::max() / ranks;
}

}  // namespace

std::optional<Turn> turn_of(const WriteArguments& a, OpenFile& file) {
  comm::Comm& comm = file.file->comm();
  const MPI_Offset at = asked_for_all(a.handle, file);
  const int64_t mine = brought(a, file);
  const bool can = at >= 0 && can_be_summed(mine, comm.size()) && !file.file->view_is_limited();
  int64_t sums[] = {can ? at : 0, can ? mine : 0, can ? 0 : 1};
  // Who leaves alone has the others wait for it.
  if (const Result<void> summed = comm.all_sum(sums); !summed) exec::abandon(summed.error());
  const Result<int64_t> before = comm::sum_before(comm, can ? mine : 0);
  if (!before) exec::abandon(before.error());
  const auto [pointer, all, cannot] = sums;
  int64_t end = 0;
  if (cannot != 0 || __builtin_add_overflow(pointer, all, &end)) return {};
  return Turn{pointer + *before, end};
}

// ROMIO's first rank writes the pointer to a file, and where it cannot MPICH ends the job. A
// library that came back with the error would leave the others waiting inside it.
void move_shared_pointer(MPI_File handle, OpenFile& file, const Turn& turn) {
  const int rc = quietly(
      handle, file, [&] { return PENSTOCK_REAL(seek_shared)(handle, turn.all_end, MPI_SEEK_SET); });
  if (const auto failed = error_of_mpi("seek_shared", rc)) exec::abandon(*failed);
}

}  // namespace penstock::pmpi
