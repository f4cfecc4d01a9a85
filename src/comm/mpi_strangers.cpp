#include "comm/mpi_strangers.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "comm/mpi_ask.hpp"
#include "comm/mpi_handler.hpp"
#include "comm/mpi_kept.hpp"
#include "comm/mpi_wait.hpp"

namespace penstock::comm {
namespace {

constexpr int kTogetherTag = 0x5065;  // every MPI library has tags up to 32767

class Group {
 public:
  explicit Group(MPI_Comm comm) { PMPI_Comm_group(comm, &group_); }
  Group(const Group& a, const Group& b) { PMPI_Group_intersection(a.group_, b.group_, &group_); }
  Group(const Group&) = delete;
  ~Group() { PMPI_Group_free(&group_); }

  MPI_Group handle() const noexcept { return group_; }

 private:
  MPI_Group group_ = MPI_GROUP_NULL;
};

bool is_part_of_the_world(MPI_Comm comm, int size) {
  const Group mine(comm), world(MPI_COMM_WORLD);
  const auto count = static_cast<size_t>(size);
  std::vector<int> ranks(count), in_world(count);
  std::iota(ranks.begin(), ranks.end(), 0);
  PMPI_Group_translate_ranks(mine.handle(), size, ranks.data(), world.handle(), in_world.data());
  return std::ranges::find(in_world, MPI_UNDEFINED) == in_world.end();
}

}  // namespace

bool has_strangers(MPI_Comm comm) {
  const int size = size_in(comm), world_size = size_in(MPI_COMM_WORLD);
  if (size == 1) return false;  // this process
  if (size > world_size) return true;
  if (is_kept(comm)) return false;
  if (size == world_size) return compared_with_world(comm) == MPI_UNEQUAL;
  return !is_part_of_the_world(comm, size);
}

Result<MPI_Comm> without_strangers(MPI_Comm comm) {
  const Group all(comm), world(MPI_COMM_WORLD), mine(all, world);
  MPI_Comm made = MPI_COMM_NULL;
  const CommHandlerAside aside(MPI_COMM_WORLD);
  const int rc = PMPI_Comm_create_group(MPI_COMM_WORLD, mine.handle(), kTogetherTag, &made);
  if (rc != MPI_SUCCESS) return mpi_error("MPI_Comm_create_group", rc);
  PMPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
  return made;
}

}  // namespace penstock::comm
