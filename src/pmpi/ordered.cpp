#include "pmpi/ordered.hpp"

#include <cstdint>
#include <limits>
#include <mutex>
#include <type_traits>
#include <utility>

#include "comm/mpi_comm.hpp"
#include "exec/abandon.hpp"
#include "pmpi/library_call.hpp"
#include "pmpi/real.hpp"

namespace penstock::pmpi {
namespace {

// Open MPI's component `individual` says nothing and divides what was there by the etype's size, as
// a number without a sign.
bool is_position(MPI_Offset at, const OpenFile& file) {
  return at >= 0 && at <= std::numeric_limits<MPI_Offset>::max() / file.file->view().etype_bytes();
}

// Where the shared pointer is, by one rank, which asks the library for all. -1: it cannot say.
MPI_Offset asked_for_all(MPI_File handle, OpenFile& file) {
  if (file.file->comm().rank() != 0) return 0;
  MPI_Offset at = -1;
  const int rc =
      quietly(handle, file, [&] { return PENSTOCK_REAL(get_position_shared)(handle, &at); });
  return rc == MPI_SUCCESS && is_position(at, file) ? at : -1;
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

bool has_threads() {
  int level = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&level);
  return level == MPI_THREAD_MULTIPLE;
}

// In etypes. Of them nothing is known where some rank `cannot` say or be summed.
struct Brought {
  int64_t before;  // by lower ranks
  int64_t all;
  bool cannot;
  bool by_threads;  // some rank has other threads that may write at the shared pointer
};

// Who leaves alone has the others wait for it.
template <class T>
T needed(Result<T> result) {
  if (!result) exec::abandon(result.error());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

// Collective: when it returns, all have come.
Brought bring(const WriteArguments& a, OpenFile& file) {
  comm::Comm& comm = file.file->comm();
  const int64_t mine = brought(a, file);
  const bool can = can_be_summed(mine, comm.size()) && !file.file->view_is_limited();
  int64_t sums[] = {can ? mine : 0, can ? 0 : 1, has_threads() ? 1 : 0};
  needed(comm.all_sum(sums));
  const int64_t before = needed(comm::sum_before(comm, can ? mine : 0));
  return {before, sums[0], sums[1] != 0, sums[2] != 0};
}

// Collective. Until its end no thread of any rank writes at the shared pointer: they take the lock
// `alone` for that, and never wait for other ranks while they have it.
std::unique_lock<CallMutex> keep_threads_out(OpenFile& file) {
  std::unique_lock lock(file.alone);
  int64_t all_have_it[] = {0};
  needed(file.file->comm().all_max(all_have_it));
  return lock;
}

// Collective. Where the shared pointer is, to all; -1: the library cannot say.
int64_t shared_pointer(MPI_File handle, OpenFile& file) {
  int64_t at[] = {asked_for_all(handle, file)};
  needed(file.file->comm().all_sum(at));
  return at[0];
}

// ROMIO's first rank writes the pointer to a file, and where it cannot MPICH ends the job. A
// library that came back with the error would leave the others waiting inside it.
void move_shared_pointer(MPI_File handle, OpenFile& file, const Turn& turn) {
  const int rc = quietly(
      handle, file, [&] { return PENSTOCK_REAL(seek_shared)(handle, turn.all_end, MPI_SEEK_SET); });
  if (const auto failed = error_of_mpi("seek_shared", rc)) exec::abandon(*failed);
}

}  // namespace

// The pointer is read and then set. A rank that has not come yet may move it until it comes, and
// its other threads for longer.
std::optional<Turn> take_turn(const WriteArguments& a, OpenFile& file) {
  const Brought brought = bring(a, file);
  if (brought.cannot) return {};
  std::unique_lock<CallMutex> lock;
  if (brought.by_threads) lock = keep_threads_out(file);
  const int64_t pointer = shared_pointer(a.handle, file);
  Turn turn{};
  if (pointer < 0 || __builtin_add_overflow(pointer, brought.all, &turn.all_end)) return {};
  turn.begin = pointer + brought.before;
  file.moved_shared_pointer = true;
  move_shared_pointer(a.handle, file, turn);
  return turn;
}

}  // namespace penstock::pmpi
