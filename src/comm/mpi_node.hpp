// The ranks of one node: split off an MPI communicator, and what they share.
#pragma once

#include <mpi.h>

#include <memory>
#include <utility>

#include "comm/comm.hpp"
#include "comm/mpi_wait.hpp"

namespace penstock::comm {

// What all processes have alike that share memory under names, and no others: the start of a
// kernel, its /dev/shm, the machine's name. 0 where that is not known, or where MPI is told to
// pretend nodes on one machine, so that it has to be asked.
int64_t node_number();

// The ranks of this rank's node, split off at most once: between nodes that costs as much as
// opening a file.
class NodeRanks {
 public:
  NodeRanks() = default;
  NodeRanks(NodeRanks&& other) noexcept : comm_(other.release()) {}
  ~NodeRanks() { free(); }

  // Collective over `mpi`, the same each time. Errors in what it makes are returned.
  Result<void> split(MPI_Comm mpi);
  // MPI_COMM_NULL before.
  MPI_Comm comm() const noexcept { return comm_; }
  MPI_Comm release() noexcept { return std::exchange(comm_, MPI_COMM_NULL); }
  // The lowest of them, as `mpi` numbers ranks. REQUIRES split() of `mpi`.
  int lowest_in(MPI_Comm mpi) const;
  // Collective over the node.
  void free();

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

// Collective over the ranks of `all`. `node`: those of them that are of this rank's node.
Result<std::shared_ptr<NodeLock>> make_mpi_node_lock(MPI_Comm node, Comm& all);
Result<std::shared_ptr<SharedSegment>> make_mpi_segment(MPI_Comm node, Comm& all,
                                                        const SegmentShape& shape);

}  // namespace penstock::comm
