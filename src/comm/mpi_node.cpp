// Who is on whose node, as MPI_Comm_split_type says, so that MPI's own ways to pretend nodes hold.
#include "comm/mpi_node.hpp"

#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "comm/shared_mutex.hpp"

namespace penstock::comm {
namespace {

Result<void> checked(const char* operation, int rc) {
  if (rc != MPI_SUCCESS) return mpi_error(operation, rc);
  return {};
}

int rank_in(MPI_Comm comm) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  return rank;
}

// A node's number is how many nodes have a lower lowest rank.
Result<int> number_of_node(MPI_Comm mpi, MPI_Comm node, Cores cores) {
  const int first = rank_in(node) == 0 ? 1 : 0;
  int before = 0, number = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  int rc = PMPI_Iexscan(&first, &before, 1, MPI_INT, MPI_SUM, mpi, &request);
  if (auto r = wait("MPI_Iexscan", rc, request, cores); !r) return tl::unexpected(r.error());
  if (first != 0 && rank_in(mpi) > 0) number = before;  // of rank 0 the result is not defined
  rc = PMPI_Ibcast(&number, 1, MPI_INT, 0, node, &request);
  if (auto r = wait("MPI_Ibcast", rc, request, cores); !r) return tl::unexpected(r.error());
  return number;
}

// The node's first rank makes the lock, tells the others its name, and takes the name away when all
// have opened it.
class LockMaker {
 public:
  LockMaker(MPI_Comm node, Cores cores) : node_(node), cores_(cores) {}

  Result<std::shared_ptr<NodeLock>> make() {
    const bool first = rank_in(node_) == 0;
    Result<std::shared_ptr<NodeLock>> lock = nullptr;
    if (first) lock = make_first();
    // An empty name tells the others that there is nothing to open.
    if (Result<void> told = tell(); !told) return tl::unexpected(told.error());
    if (!first) lock = open();
    MPI_Request request = MPI_REQUEST_NULL;
    const int rc = PMPI_Ibarrier(node_, &request);
    const Result<void> met = wait("MPI_Ibarrier", rc, request, cores_);
    if (first) forget_mutex_name(name_.data());
    if (!met) return tl::unexpected(met.error());
    return lock;
  }

 private:
  Result<std::shared_ptr<NodeLock>> make_first() {
    const std::string name = unused_mutex_name();
    if (name.size() >= name_.size())
      return fail(ErrorClass::internal, "node lock", "the name is too long: " + name);
    auto made = make_shared_mutex(name);
    if (made) std::memcpy(name_.data(), name.data(), name.size());
    return made;
  }

  Result<void> tell() {
    MPI_Request request = MPI_REQUEST_NULL;
    const int rc = PMPI_Ibcast(name_.data(), int(name_.size()), MPI_CHAR, 0, node_, &request);
    return wait("MPI_Ibcast", rc, request, cores_);
  }

  Result<std::shared_ptr<NodeLock>> open() {
    if (name_[0] == '\0')
      return fail(ErrorClass::communication, "node lock",
                  "the first rank of this node could not make it");
    return open_shared_mutex(name_.data());
  }

  MPI_Comm node_;
  Cores cores_;
  std::array<char, 128> name_{};
};

}  // namespace

Result<NodePart> split_mpi_by_node(MPI_Comm mpi, Comm& comm, Cores cores) {
  NodePart part;
  Result<void> mine = checked(
      "MPI_Comm_split_type",
      PMPI_Comm_split_type(mpi, MPI_COMM_TYPE_SHARED, rank_in(mpi), MPI_INFO_NULL, &part.comm));
  if (auto agreed = agree(comm, mine); !agreed) return tl::unexpected(agreed.error());
  const Result<int> node = number_of_node(mpi, part.comm, cores);
  if (!node) mine = tl::unexpected(node.error());
  if (auto agreed = agree(comm, mine); !agreed) {
    PMPI_Comm_free(&part.comm);
    return tl::unexpected(agreed.error());
  }
  part.node = *node;
  return part;
}

Result<std::shared_ptr<NodeLock>> make_mpi_node_lock(MPI_Comm mpi, Comm& comm, Cores cores) {
  if (comm.size() == 1) return make_thread_lock();
  Result<NodePart> part = split_mpi_by_node(mpi, comm, cores);
  if (!part) return tl::unexpected(std::move(part).error());
  Result<std::shared_ptr<NodeLock>> lock = LockMaker(part->comm, cores).make();
  PMPI_Comm_free(&part->comm);
  const Result<void> mine = lock ? Result<void>() : Result<void>(tl::unexpected(lock.error()));
  if (auto agreed = agree(comm, mine); !agreed) return tl::unexpected(agreed.error());
  return lock;
}

}  // namespace penstock::comm
