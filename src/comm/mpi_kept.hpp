// What is kept of a program's communicator between the files that are opened on it: how its ranks
// are dealt to nodes, and the duplicates that closed files have left. To make either takes several
// rounds of messages, which between nodes is most of what opening a file costs.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "comm/board.hpp"
#include "comm/kept_segments.hpp"
#include "comm/mpi_node.hpp"

namespace penstock::comm {

// How a communicator's ranks are dealt to nodes.
struct NodeFacts {
  int nodes = 1;
  int cores_per_node = 1;
  int own_node = 0;
  int turn = 0;  // base/dealing.hpp
};

class Kept;

// Duplicates of the ranks of one node among several.
struct NodeParts {
  std::shared_ptr<Kept> kept;
  int64_t made = 0;  // the same on all ranks
};

// A communicator of Penstock's own, on which errors are returned; what was split off it, and what
// files have left there.
class Duplicate {
 public:
  // Collective over `parent`. `number`: the same on all ranks, and no other duplicate's there.
  static Result<std::unique_ptr<Duplicate>> make(MPI_Comm parent, int64_t number);
  Duplicate(MPI_Comm comm, int64_t number, NodeRanks node_ranks = {})
      : comm_(comm), number_(number), node_ranks_(std::move(node_ranks)) {
    ++alive_;
  }
  // Of one rank, for files that send no messages: they share a communicator, which stays.
  static Result<std::unique_ptr<Duplicate>> of_one_rank();
  Duplicate(const Duplicate&) = delete;
  ~Duplicate();

  MPI_Comm comm() const noexcept { return comm_; }
  int64_t number() const noexcept { return number_; }
  NodeRanks& node_ranks() noexcept { return node_ranks_; }
  KeptSegments& segments() noexcept { return segments_; }
  NodeParts& node_parts() noexcept { return node_parts_; }
  // How many collectives there were before: the same on all ranks.
  int64_t counts_call() noexcept { return calls_++; }
  void keep_board(std::unique_ptr<Board> board) noexcept { board_ = std::move(board); }
  Board* board() const noexcept { return board_.get(); }
  // Collective. A communicator for messages that come unasked, to be given back when nothing is on
  // its way in it.
  Result<MPI_Comm> take_for_parcels();
  void give_back(MPI_Comm for_parcels) noexcept;
  // So that all ranks have none: some may have made none.
  void drop_for_parcels() noexcept;
  // Of this process. MPI libraries have some thousand communicators in all, for the program too.
  static int alive() noexcept { return alive_; }
  // The file that uses it is its last. REQUIRES all ranks to say so.
  void end_with_file() noexcept { ends_with_file_ = true; }
  bool ends_with_file() const noexcept { return ends_with_file_; }

 private:
  static inline std::atomic<int> alive_ = 0;
  MPI_Comm comm_;
  int64_t number_;
  bool is_shared_ = false;
  NodeRanks node_ranks_;
  KeptSegments segments_;
  NodeParts node_parts_;
  int64_t calls_ = 0;
  std::unique_ptr<Board> board_;          // null: none was made
  MPI_Comm for_parcels_ = MPI_COMM_NULL;  // while nobody has it
  bool ends_with_file_ = false;
};

// Of all communicators that have the same ranks in the same order because one was duplicated from
// the other. Safe to use from several threads.
class Kept {
 public:
  Kept(NodeFacts facts, MPI_Comm comm);
  Kept(const Kept&) = delete;
  ~Kept();

  const NodeFacts& facts() const noexcept { return facts_; }
  // Local. Not only duplicates inherit attributes: so does what MPIX_Comm_shrink makes, which has
  // fewer ranks, and what Open MPI's MPI_Comm_create_group makes, which may have them in another
  // order. Then some rank is another one.
  bool is_of(MPI_Comm comm) const;
  // The duplicate with the lowest number that a file has left here; null when there is none.
  std::unique_ptr<Duplicate> take();
  // For the next file. REQUIRES that nothing is on its way in it.
  void leave(std::unique_ptr<Duplicate> duplicate);

 private:
  const NodeFacts facts_;
  const int ranks_;
  const int rank_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Duplicate>> left_;
};

// What a file's communicator begins with, and who has it in the end; null: nobody.
struct Start {
  std::unique_ptr<Duplicate> own;
  NodeFacts facts;
  std::shared_ptr<Kept> kept;
};
// Whether a rank sends messages where it is alone: its threads to each other.
enum class Alone : uint8_t { sends_none, sends_to_itself };
// Collective over `parent`. The same on all ranks: each may have left and kept other things, where
// threads open and close files in no common order, so ranks agree on what they take.
Result<Start> start_on(MPI_Comm parent, Alone alone);
// Local. A file was opened on it, or on what it is a duplicate of.
bool is_kept(MPI_Comm comm);
// Collective over `all`, likewise, of `node`'s ranks, which are those of this node.
Result<Start> start_part(Duplicate& all, MPI_Comm node, int cores_per_node);

}  // namespace penstock::comm
