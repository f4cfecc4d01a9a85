// Who writes which bytes, and the flattened lists of what goes where: all that the page ring takes
// for granted. It is made before the clock starts, from everybody's file views.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "base/extent.hpp"
#include "layout/cursor.hpp"
#include "layout/file_view.hpp"
#include "ring.hpp"

namespace penstock::peers {

// A range of the file without holes, inside one file page, written by one rank in one call.
struct Piece {
  Extent extent;
  uint32_t arrivals = 0;  // ranks that have bytes in it; 1: that rank writes it from its own memory
  Slot slot;              // owner: who writes it; number and use only when arrivals > 1
};

// My bytes in a piece: runs [first, end) of the list, in stream order from `position` on.
struct Work {
  int piece = 0;
  size_t first = 0, end = 0;
  int64_t position = 0;  // within the iteration
  int64_t bytes = 0;
};

struct IterationPlan {
  std::vector<Piece> pieces;      // in file order, the same on every rank
  std::vector<int> owned;         // pieces with several arrivals that I write, in file order
  std::vector<Work> works;        // in file order
  std::vector<layout::Run> runs;  // offsets in the file
};

struct PlanShape {
  int64_t page_bytes = 0;
  int slots = 0;    // pages per owner
  int writers = 0;  // owners
  int64_t file_bytes = 0;
  int64_t bytes_per_iteration = 0;  // this rank's
};

// Collective. Slot uses go on from iteration to iteration, so plans are made in order.
class Planner {
 public:
  Planner(MPI_Comm comm, const PlanShape& shape, const layout::FileView& view);
  IterationPlan next();

 private:
  struct Share;  // what the ranks have in a page
  std::vector<Share> shares(StreamRange mine) const;
  std::vector<Piece> cut(const std::vector<Share>& pages, StreamRange mine) const;
  void assign(std::vector<Piece>& pieces);
  void flatten(IterationPlan& plan, StreamRange mine) const;

  MPI_Comm comm_;
  int rank_ = 0, ranks_ = 1;
  PlanShape shape_;
  layout::FileView view_;
  int64_t iteration_ = 0;
  int64_t dealt_ = 0;  // pieces of the ring so far
};

}  // namespace penstock::peers
