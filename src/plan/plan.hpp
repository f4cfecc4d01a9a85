// A plan: who writes which bytes in which cycle, as a value. It is computed
// by pure functions from summaries (plan/algorithm.hpp), and the same value is executed on
// MPI ranks or threads (exec), costed, simulated and drawn. Nothing here holds
// a list of segments or of ranks: each rank asks for its own part, cycle by cycle.
#pragma once

#include <climits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/dealing.hpp"
#include "base/extent.hpp"
#include "layout/file_view.hpp"
#include "plan/summary.hpp"

namespace penstock::plan {

// The ranks that a plan is for, as far as placement cares.
struct Team {
  int ranks = 1;
  int nodes = 1;
  int cores_per_node = 1;  // usable cores
  int turn = 0;            // how ranks are dealt to nodes

  Dealing dealing() const noexcept { return {ranks, nodes, turn}; }
};

// A piece of one rank's own stream: it goes to `writer` in `cycle`.
struct Slice {
  int writer = 0;
  int cycle = 0;
  StreamRange src;
  friend bool operator==(const Slice&, const Slice&) = default;
};

struct IntRange {  // half-open
  int begin = 0, end = 0;
  bool contains(int x) const noexcept { return begin <= x && x < end; }
  bool empty() const noexcept { return end <= begin; }
};

class Plan {
 public:
  virtual ~Plan() = default;

  // Writers are numbered 0..writers()-1; each is one rank, and no rank is two writers.
  virtual int writers() const noexcept = 0;
  virtual int writer_rank(int writer) const noexcept = 0;
  virtual std::optional<int> writer_of(int rank) const noexcept = 0;

  // Cycles of one writer; 0 when it has nothing to write.
  virtual int cycles(int writer) const noexcept = 0;
  // The largest number of cycles of any writer: how often the pipeline turns.
  virtual int cycles() const noexcept = 0;
  // The file bytes that a writer may write in a cycle. Extents of different (writer, cycle) pairs
  // never overlap when owns_blocks(), and are ascending in cycle for one writer. An upper bound on
  // size. An empty one: the writer has nothing to do in that cycle.
  virtual Extent extent(int writer, int cycle) const = 0;
  // No extent is larger, or where the algorithm scatters, no page: what a writer needs for its
  // page.
  virtual int64_t page_bytes() const noexcept = 0;

  // Cuts fall on the geometry's unit, so each unit has one writer: direct I/O, mmap and network
  // file systems are safe.
  virtual bool owns_blocks() const noexcept = 0;
  // Some bytes move between ranks. When not, each rank writes its own and no messages flow.
  virtual bool exchanges() const noexcept = 0;

  // Conservative: the cycles in which a rank with this summary may have bytes for any writer, and
  // in such a cycle the consecutive writers that may get some. Both sides compute the same.
  virtual IntRange cycles_of(const Summary& s, int rank) const = 0;
  virtual IntRange writers_of(const Summary& s, int rank, int cycle) const = 0;
  // The consecutive writers that may get bytes of that rank in some cycle. A writer is named only
  // if its domain (from its first extent to its last) overlaps s.extent().
  virtual IntRange reached(const Summary& s, int rank) const = 0;
  // All ranks that may have bytes for a writer are among these consecutive ones.
  virtual IntRange senders(int) const noexcept { return {0, INT_MAX}; }
  bool owes(const Summary& s, int rank, int writer, int cycle) const {
    return cycles_of(s, rank).contains(cycle) && writers_of(s, rank, cycle).contains(writer);
  }

  // Exact: the part of `own` (a range of the stream of `rank`, through `view`) that goes to
  // `writer` in `cycle`; empty when none. Sender and writer compute the same. REQUIRES
  // view.is_monotone().
  virtual StreamRange part(const layout::FileView& view, StreamRange own, int rank, int writer,
                           int cycle) const = 0;

  // The first cycle at or behind `from` in which part() is not empty; cycles(writer) when there is
  // none. What lies between is skipped by bisection: it costs what the rank brings, not what its
  // bytes span. REQUIRES what part() does, and that reached() names the writer for that rank.
  virtual int next_cycle(const layout::FileView& view, StreamRange own, int rank, int writer,
                         int from) const;

  // --- Of plans whose cycles end where only a writer can know, since it alone has the views of its
  // senders (Needs::cuts). It finds the cuts and tells its senders; with them the plan is whole.

  // How many cuts a writer has to find; until they are known part() must not be asked for a sender
  // of that writer, and cycles_of() and extent() of it say too much.
  virtual int cuts(int) const noexcept { return 0; }
  // Ascending. `senders`: the parts of all that have bytes for the writer, in any order.
  virtual std::vector<Off> find_cuts(int writer, std::span<const Part> senders) const;
  // The same plan that knows the cuts of that writer, too.
  virtual std::unique_ptr<const Plan> with_cuts(int writer, std::vector<Off> cuts) const;
};

// The first cycle at or behind `from` in which that rank sends anything to any writer; INT_MAX when
// there is none.
int next_cycle_of(const Plan& plan, const layout::FileView& view, StreamRange own,
                  const Summary& summary, int rank, int from);

// The plan with all cuts, for who has the parts of all ranks: tests, and whoever tells or draws a
// plan. The ranks of a job each learn those of their own writer only.
std::shared_ptr<const Plan> with_all_cuts(std::shared_ptr<const Plan> plan,
                                          std::span<const Part> by_rank);

// The slices of one rank, lazily, in (cycle, writer) order, none empty. Together they are exactly
// `own`.
//   for (Slices s(plan, view, own, summary, rank); auto slice = s.next();) ...
class Slices {
 public:
  Slices(const Plan& plan, const layout::FileView& view, StreamRange own, const Summary& summary,
         int rank);
  std::optional<Slice> next();

 private:
  void begin_cycle(int cycle);

  const Plan& plan_;
  const layout::FileView& view_;
  StreamRange own_;
  Summary summary_;
  int rank_;
  IntRange cycles_;
  IntRange writers_;
  int cycle_ = 0;
  int writer_ = 0;
  bool found_ = false;  // anything in this cycle
};

}  // namespace penstock::plan
