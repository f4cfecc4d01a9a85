// The ranks of one node: split off an MPI communicator, and what they share.
#pragma once

#include <mpi.h>

#include <memory>
#include <optional>

#include "comm/comm.hpp"
#include "comm/mpi_wait.hpp"

namespace penstock::comm {

// The ranks of a rank's node, split off once: between nodes that costs as much as opening a file.
class OwnNode {
 public:
  OwnNode() = default;
  OwnNode(const OwnNode&) = delete;
  ~OwnNode();

  // Collective over `mpi`.
  Result<void> split(MPI_Comm mpi);
  bool is_first() const;  // of the node; split() has succeeded

  struct Part {
    MPI_Comm comm = MPI_COMM_NULL;  // not the caller's
    int node = 0;
  };
  // Collective over `mpi`; `comm` are the same ranks, for agreement. All succeed or all fail.
  Result<Part> get(MPI_Comm mpi, Comm& comm);

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::optional<int> number_;
};

// Collective over the ranks of `all`. `node`: those of them that are of this rank's node.
Result<std::shared_ptr<NodeLock>> make_mpi_node_lock(MPI_Comm node, Comm& all);
Result<std::shared_ptr<SharedSegment>> make_mpi_segment(MPI_Comm node, Comm& all, size_t bytes,
                                                        Room room);

}  // namespace penstock::comm
