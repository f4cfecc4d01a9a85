// One I/O node of gotwals-1995's third model: which blocks are in its memory and which were paged
// out, and what its output disk and its paging disk do next. It knows no time: the simulator
// (model/simulator.hpp) says when a transfer has ended, and asks what begins. Blocks are numbered
// by their place among the node's own, in the order in which they arrive.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "model/system.hpp"

namespace penstock::model {

class IoNode {
 public:
  enum class Direction : uint8_t { out, in };
  struct Transfer {
    Direction direction;
    int64_t block;
  };

  // `coming`: how many blocks the application will send.
  IoNode(const System& system, int64_t coming);

  // --- What begins. A block keeps its frame until its transfer has ended.

  // There is a frame for the next block from the network.
  bool can_take() const;
  void take();
  // The block that the output disk begins to write, if it is idle and there is one.
  std::optional<int64_t> start_write();
  // What the paging disk begins to move, if it is idle and there is something.
  std::optional<Transfer> start_paging();

  // --- What has ended.
  void arrived(int64_t block) { memory_.insert(block); }
  void written();
  void paged(const Transfer& transfer);

 private:
  std::optional<int64_t> wanted() const;
  bool has_unused_memory() const { return free_frames_ > 0 && coming_ == 0; }
  bool needs_room() const;
  std::optional<int64_t> victim() const;
  Transfer page_in(int64_t block);
  Transfer page_out(int64_t block);

  int64_t capacity_;
  Paging paging_;
  Order order_;
  int64_t coming_;
  int64_t free_frames_;
  int64_t held_ = 0;          // blocks taken and not yet written, wherever they are
  int64_t begun_writes_ = 0;  // in file order this is the number of the next block to write
  bool writing_ = false;
  bool moving_pages_ = false;
  std::set<int64_t> memory_;  // what lies in memory and is not being moved
  std::set<int64_t> paged_;   // what lies on the paging disk
};

}  // namespace penstock::model
