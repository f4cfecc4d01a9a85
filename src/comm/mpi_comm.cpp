// Comm over an MPI communicator, by PMPI_ names only: profilers and the shim
// see none of our traffic. Every wait is a loop of MPI_Test with a growing pause:
// the tests let the program's own messages progress (an endless sleep deadlocks legal
// programs), the pauses let ranks that outnumber cores run at all.
#include "comm/mpi_comm.hpp"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <string>
#include <utility>

#include "comm/mpi_node.hpp"
#include "comm/mpi_parcels.hpp"
#include "comm/mpi_slots.hpp"
#include "comm/mpi_transfers.hpp"
#include "comm/mpi_wait.hpp"

namespace penstock::comm {
namespace {

Result<int> int_count(const char* operation, size_t n) {
  if (n <= size_t(INT_MAX)) return int(n);
  return fail(ErrorClass::communication, operation,
              "counts of MPI-3 end at 2147483647, got " + std::to_string(n));
}

struct NodeFacts {
  int nodes = 1;
  int cores_per_node = 1;
};

// Facts are cached on the program's communicator: splitting costs milliseconds on busy nodes.
int delete_facts(MPI_Comm, int, void* value, void*) {
  delete static_cast<NodeFacts*>(value);
  return MPI_SUCCESS;
}

int facts_key() {
  static const int key = [] {
    int k = MPI_KEYVAL_INVALID;
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &delete_facts, &k, nullptr);
    return k;
  }();
  return key;
}

void remember_facts(MPI_Comm comm, NodeFacts facts) {
  PMPI_Comm_set_attr(comm, facts_key(), new NodeFacts(facts));
}

class MpiComm final : public Comm {
 public:
  MpiComm(MPI_Comm comm, int rank, int size) : comm_(comm), rank_(rank), size_(size) {}

  ~MpiComm() override {
    int finalized = 0;
    PMPI_Finalized(&finalized);
    if (finalized == 0) PMPI_Comm_free(&comm_);
  }

  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return size_; }
  int nodes() const noexcept override { return facts_.nodes; }
  int cores_per_node() const noexcept override { return facts_.cores_per_node; }
  void set_facts(NodeFacts facts) noexcept { facts_ = facts; }

  Result<void> allgather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    const auto n = int_count("MPI_Iallgather", mine.size());
    if (!n) return tl::unexpected(n.error());
    MPI_Request request = MPI_REQUEST_NULL;
    const int rc =
        PMPI_Iallgather(mine.data(), *n, MPI_BYTE, all.data(), *n, MPI_BYTE, comm_, &request);
    return wait("MPI_Iallgather", rc, request);
  }

  Result<void> all_max(std::span<int64_t> values) override { return reduce(values, MPI_MAX); }
  Result<void> all_sum(std::span<int64_t> values) override { return reduce(values, MPI_SUM); }

  Result<void> barrier() override {
    MPI_Request request = MPI_REQUEST_NULL;
    const int rc = PMPI_Ibarrier(comm_, &request);
    return wait("MPI_Ibarrier", rc, request);
  }

  Result<std::vector<std::byte>> gather(std::span<const std::byte> mine, int root) override;

  Result<std::shared_ptr<NodeLock>> node_lock() override {
    return make_mpi_node_lock(comm_, *this);
  }

  Result<std::shared_ptr<SharedSegment>> shared_segment(size_t bytes, Room room) override {
    return make_mpi_segment(comm_, *this, bytes, room);
  }

  Result<NodeComm> split_by_node() override {
    auto part = split_mpi_by_node(comm_, *this);
    if (!part) return tl::unexpected(std::move(part).error());
    remember_facts(part->comm, {1, facts_.cores_per_node});
    Result<std::unique_ptr<Comm>> comm = make_mpi_comm(part->comm);
    PMPI_Comm_free(&part->comm);
    if (!comm) return tl::unexpected(std::move(comm).error());
    return NodeComm{*std::move(comm), part->node};
  }

  Result<std::unique_ptr<Parcels>> parcels() override {
    auto made = make_mpi_parcels(comm_);
    const Result<void> mine = made ? Result<void>() : Result<void>(tl::unexpected(made.error()));
    if (auto agreed = agree(*this, mine); !agreed) return tl::unexpected(agreed.error());
    return made;
  }

  Result<std::unique_ptr<Slots>> slots(const SlotsShape& shape) override {
    return make_mpi_slots(comm_, *this, shape);
  }

  std::unique_ptr<Transfers> transfers() override { return make_mpi_transfers(comm_); }

 private:
  Result<void> reduce(std::span<int64_t> values, MPI_Op op) {
    const auto n = int_count("MPI_Iallreduce", values.size());
    if (!n) return tl::unexpected(n.error());
    MPI_Request request = MPI_REQUEST_NULL;
    const int rc =
        PMPI_Iallreduce(MPI_IN_PLACE, values.data(), *n, MPI_INT64_T, op, comm_, &request);
    return wait("MPI_Iallreduce", rc, request);
  }

  MPI_Comm comm_;
  int rank_, size_;
  NodeFacts facts_;
};

Result<std::vector<std::byte>> MpiComm::gather(std::span<const std::byte> mine, int root) {
  int64_t total = int64_t(mine.size());
  if (auto r = all_sum({&total, 1}); !r) return tl::unexpected(r.error());
  // Everybody knows the total, so everybody refuses alike.
  if (auto n = int_count("MPI_Igatherv", size_t(total)); !n) return tl::unexpected(n.error());
  const int n = int(mine.size());
  std::vector<int> counts(rank_ == root ? size_t(size_) : 0), offsets(counts.size());
  MPI_Request request = MPI_REQUEST_NULL;
  int rc = PMPI_Igather(&n, 1, MPI_INT, counts.data(), 1, MPI_INT, root, comm_, &request);
  if (auto r = wait("MPI_Igather", rc, request); !r) return tl::unexpected(r.error());
  for (size_t i = 1; i < counts.size(); ++i) offsets[i] = offsets[i - 1] + counts[i - 1];
  std::vector<std::byte> all(rank_ == root ? size_t(total) : 0);
  rc = PMPI_Igatherv(mine.data(), n, MPI_BYTE, all.data(), counts.data(), offsets.data(), MPI_BYTE,
                     root, comm_, &request);
  if (auto r = wait("MPI_Igatherv", rc, request); !r) return tl::unexpected(r.error());
  return all;
}

// Collective. Cores are those of the node, not of the launcher's binding to one core.
Result<NodeFacts> find_nodes(MPI_Comm comm, MpiComm& dup, int rank) {
  MPI_Comm node = MPI_COMM_NULL;
  int rc = PMPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
  if (rc != MPI_SUCCESS) return mpi_error("MPI_Comm_split_type", rc);
  int node_rank = 0;
  PMPI_Comm_rank(node, &node_rank);
  PMPI_Comm_free(&node);
  int64_t first_ranks = node_rank == 0 ? 1 : 0;
  int64_t fewest = -std::max(1L, sysconf(_SC_NPROCESSORS_ONLN));
  if (auto r = dup.all_sum({&first_ranks, 1}); !r) return tl::unexpected(r.error());
  if (auto r = dup.all_max({&fewest, 1}); !r) return tl::unexpected(r.error());
  return NodeFacts{int(first_ranks), int(-fewest)};
}

Result<NodeFacts> node_facts(MPI_Comm parent, MPI_Comm dup, MpiComm& comm) {
  if (comm.size() == 1) return NodeFacts{1, int(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)))};
  NodeFacts* known = nullptr;
  int found = 0;
  PMPI_Comm_get_attr(parent, facts_key(), static_cast<void*>(&known), &found);
  if (found != 0) return *known;
  auto facts = find_nodes(dup, comm, comm.rank());
  if (facts) remember_facts(parent, *facts);
  return facts;
}

}  // namespace

Result<std::unique_ptr<Comm>> make_mpi_comm(MPI_Comm parent) {
  MPI_Comm dup = MPI_COMM_NULL;
  if (const int rc = PMPI_Comm_dup(parent, &dup); rc != MPI_SUCCESS) {
    return mpi_error("MPI_Comm_dup", rc);
  }
  PMPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN);
  int rank = 0, size = 1;
  PMPI_Comm_rank(dup, &rank);
  PMPI_Comm_size(dup, &size);
  auto comm = std::make_unique<MpiComm>(dup, rank, size);
  auto facts = node_facts(parent, dup, *comm);
  if (!facts) return tl::unexpected(facts.error());
  comm->set_facts(*facts);
  return comm;
}

}  // namespace penstock::comm
