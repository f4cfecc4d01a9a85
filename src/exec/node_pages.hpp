// The pages of a node's writers in memory that the ranks of the node share: each rank copies its
// bytes straight to their place in the writer's page, one copy in all. Ranks of other nodes send
// messages as ever.
//
// A writer opens its page of a cycle and says how many ranks will come; each of them waits until it
// is open, fills its part and leaves; the writer waits until all have left. Who comes follows from
// the plan alone (Plan::owes), so nobody asks. Nobody can wait for ever: a page is opened before
// anything else is done in its cycle, and its slot was free since the writer's own cycles before.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "comm/comm.hpp"
#include "exec/node_wait.hpp"
#include "exec/page.hpp"
#include "io/mechanism.hpp"
#include "plan/plan.hpp"

namespace penstock::exec {

class NodePages {
 public:
  // Collective; `node`: those of `comm` that are on this rank's. `file` must outlive it.
  static Result<std::unique_ptr<NodePages>> make(comm::Comm& comm, std::unique_ptr<comm::Comm> node,
                                                 io::MechanismFile& file);
  ~NodePages();
  NodePages(const NodePages&) = delete;

  // Collective over the node. Whether the pages of this call are shared; when not, why_not() says
  // why, or is empty where no two ranks are on this node.
  bool begin(const plan::Plan& plan);
  const std::string& why_not() const noexcept { return why_not_; }
  // No page is under way any more, and the ranks have not met since: what a later call must know.
  void end();
  // Calls that do not share follow: leases come from the file's own memory again.
  void rest();

  // Another rank whose pages this one fills itself.
  bool holds(int rank) const noexcept;

  // --- The writer ---
  // `fillers` ranks of the node will come. `page.memory` is of a lease of the file.
  void open(const Page& page, int fillers);
  void wait_until_filled(int cycle);

  // --- A rank that fills ---
  struct Place {
    std::byte* memory = nullptr;  // of file byte where.begin; nullptr: the bytes are dropped
    Extent where;
  };
  Place enter(int writer_rank, int cycle);  // waits until it is open
  void leave(int writer_rank, int cycle);

 private:
  struct Board;

  // How the segment is divided: behind the boards the areas of the writers, slots_ of each.
  struct Layout {
    int64_t area_bytes = 0;
    std::vector<int> writers;  // in ranks_, ascending
    friend bool operator==(const Layout&, const Layout&) = default;
  };

  NodePages(std::unique_ptr<comm::Comm> node, std::vector<int> ranks, io::MechanismFile& file,
            int cores);
  bool all_can();
  Layout layout_for(const plan::Plan& plan) const;
  int64_t boards_bytes() const noexcept;
  size_t area_at(int64_t area) const noexcept;  // in the segment
  void note_entered(int64_t at);
  bool reserve(const Layout& wanted);
  Result<void> give_out(const Layout& wanted);
  void take_back();
  bool agreed(const Result<void>& mine);
  bool off(const std::string& why);
  bool not_now(const std::string& why);

  int index_of(int rank) const noexcept;  // in ranks_; -1: on another node
  Board& board(int index, int cycle) const noexcept;
  FutexWord& spoilt() const noexcept;
  uint32_t stamp(int cycle) const noexcept { return first_stamp_ + uint32_t(cycle) + 1; }

  std::unique_ptr<comm::Comm> node_;
  std::vector<int> ranks_;  // of this node, ascending
  io::MechanismFile& file_;
  const int slots_;
  const int self_;  // in ranks_
  const NodeWait wait_;
  std::shared_ptr<comm::SharedSegment> segment_;
  Layout layout_;              // of the segment now
  std::vector<bool> entered_;  // areas to which this rank has come
  uint32_t first_stamp_ = 0;   // of this call; each cycle of each call has a stamp of its own
  uint32_t stamps_of_call_ = 0;
  bool given_ = false;  // the file's leases are in the segment
  bool never_ = false;  // sharing failed for good
  std::string why_not_;
};

}  // namespace penstock::exec
