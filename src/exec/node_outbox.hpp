// What the ranks of one node send together. A bundle is all that the node has for one writer of
// another node in one cycle: the parts of its ranks, one behind the other in rank order. It leaves
// in loads of load_bytes(); each rank packs straight into its place in the load, in memory that the
// node shares, and one rank, the leader, sends it.
//
// Every writer has a board, and every board a leader: writer w has board w mod boards(), and its
// leader is the rank of the node at place (board mod ranks of the node). So the leaders' work is
// spread over the ranks, and who leads is arithmetic for the sender and the writer alike. Writers
// beyond boards() share boards: such a set of writers is a group, and groups are served in order.
//
// The leader opens its board for a bundle and says how many ranks bring something; each writes down
// how many bytes; when all have, each knows its place, and packs load after load.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/comm.hpp"
#include "exec/chunks.hpp"
#include "exec/node_map.hpp"
#include "exec/node_wait.hpp"
#include "plan/plan.hpp"

namespace penstock::exec {

class NodeOutbox {
 public:
  // Two are received at a time, where single messages were.
  static constexpr int64_t kMostLoadBytes = kChunks * kMessageBytes / 2;

  // Collective; `node`: those of `comm` that are on this rank's.
  static Result<std::unique_ptr<NodeOutbox>> make(comm::Comm& comm,
                                                  std::unique_ptr<comm::Comm> node);
  NodeOutbox(const NodeOutbox&) = delete;

  // Collective. Whether nodes send together in this call, the same on all ranks; when not,
  // why_not() says why, or is empty where no node has two ranks, or there is one node.
  // `outbox_bytes` bounds a node's loads.
  bool begin(const plan::Plan& plan, int64_t outbox_bytes);
  const std::string& why_not() const noexcept { return why_not_; }

  // --- Who ---
  const NodeMap& map() const noexcept { return map_; }
  int node() const noexcept { return comm_.own_node(); }          // this rank's
  std::span<const int> ranks() const noexcept { return ranks_; }  // of this node, ascending
  int place() const noexcept { return node_->rank(); }            // of this rank in its node
  int board_of(int writer) const noexcept { return writer % shape_.boards; }
  int group_of(int writer) const noexcept { return writer / shape_.boards; }
  int boards() const noexcept { return shape_.boards; }
  int leader_of(int node, int writer) const noexcept;  // a rank
  bool leads(int writer) const noexcept { return leader_of(node(), writer) == comm_.rank(); }
  int64_t load_bytes() const noexcept { return shape_.load_bytes; }

  // A bundle of this node, by its writer and its cycle.
  struct Name {
    int writer = 0, cycle = 0;
  };
  // Its size, and what lies before this rank's part of it.
  struct Placing {
    int64_t before = 0, total = 0;
  };

  // --- The leader ---
  // `parts` ranks of the node will call bring().
  void open(Name bundle, int parts);
  // The load that is packed now, when all its bytes are there.
  std::span<const std::byte> wait_until_packed(int writer, int64_t bytes);
  // The load has been sent: the next one may be packed.
  void next_load(int writer);

  // --- A rank that has a part ---
  void bring(Name bundle, int64_t bytes);  // waits until it is open
  // The place of that load, once it may be packed, and then: so many bytes of `load_bytes` are.
  std::byte* enter(int writer, int load);
  void leave(int writer, int64_t bytes, int64_t load_bytes);

  // The leader, or a rank that brought some bytes: waits until all sizes are known.
  Placing placing(int writer);

 private:
  struct Board;

  // The same on all ranks of the job.
  struct Shape {
    int64_t load_bytes = 0;
    int boards = 0;
    int64_t bytes() const noexcept { return load_bytes * boards; }
  };

  NodeOutbox(comm::Comm& comm, std::unique_ptr<comm::Comm> own, NodeMap map);
  Shape shape_for(const plan::Plan& plan, int64_t outbox_bytes) const;
  Result<void> reserve(const Shape& wanted);
  int64_t board_step() const noexcept;
  int64_t loads_begin() const noexcept;
  Board& board(int writer) const noexcept;
  std::span<int64_t> sizes(int writer) const noexcept;  // of the parts, by place in the node
  std::byte* load(int writer) const noexcept;
  uint32_t stamp(Name bundle) const noexcept;

  comm::Comm& comm_;
  std::unique_ptr<comm::Comm> node_;
  const NodeMap map_;
  std::vector<int> ranks_;
  const NodeWait wait_;
  std::shared_ptr<comm::SharedSegment> segment_;
  int most_boards_ = 0;           // that the segment has
  int64_t most_loads_bytes_ = 0;  // likewise
  Shape shape_;                   // of this call
  uint32_t first_stamp_ = 0;      // of this call; each (group, cycle) of each call has its own
  uint32_t stamps_of_call_ = 0;
  int groups_ = 0;
  bool never_ = false;  // there is no outbox, for good
  std::string why_not_;
};

}  // namespace penstock::exec
