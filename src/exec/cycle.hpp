// One cycle of an exchange: this rank's slices go out, and a writer's file page is filled. Pages of
// this node's writers are filled in place where they are shared (exec/node_pages.hpp); the rest
// travels in messages of at most kMessageBytes, from and into a fixed number of chunks, so memory
// does not follow the number of ranks or segments; contiguous data is sent and received in place.
// What the ranks of a node send together (exec/node_leaders.hpp) follows when these have arrived.
//
// No rank can wait for ever: every rank sends in writer order and receives in
// rank order, so the lowest unfinished message of the lowest rank is always in flight on both
// sides. A rank sends and receives only when it waits for no shared page any more, and a shared
// page waits for messages of earlier cycles only.
#pragma once

#include <algorithm>
#include <climits>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "exec/abandon.hpp"
#include "exec/chunks.hpp"
#include "exec/node_leaders.hpp"
#include "exec/node_pages.hpp"
#include "exec/page.hpp"
#include "exec/parties.hpp"
#include "exec/pipeline.hpp"
#include "exec/user_data.hpp"
#include "layout/cursor.hpp"

namespace penstock::exec {

inline constexpr int kInFlight = 64;  // messages in flight in each direction

// A stream range in pieces of at most kMessageBytes: both sides cut alike.
class Pieces {
 public:
  Pieces() = default;
  explicit Pieces(StreamRange range) : rest_(range) {}
  bool empty() const noexcept { return rest_.empty(); }
  StreamRange pop() noexcept {
    const StreamRange piece{rest_.begin,
                            std::min(rest_.end, capped_sum(rest_.begin, kMessageBytes))};
    rest_.begin = piece.end;
    return piece;
  }

 private:
  StreamRange rest_;
};

// The messages of a cycle: each side starts as many as it may, and goes on with what has ended.
template <class Incoming, class Outgoing>
void pass_messages(comm::Transfers& transfers, double& exchange_s, Incoming& incoming,
                   Outgoing& outgoing) {
  for (;;) {
    incoming.start_more();
    outgoing.start_more();
    std::optional<comm::Event> event;
    {
      const Stopwatch watch(exchange_s);
      event = next_or_abandon(transfers);
    }
    if (!event) break;
    if (event->kind == comm::Event::Kind::received)
      incoming.received(event->number);
    else
      outgoing.sent(event->number);
  }
}

// Lists of a cycle's messages, kept so that cycles allocate nothing.
struct CycleLists {
  struct Source {  // of what is received
    Peer* peer = nullptr;
    StreamRange part;
    Extent extent;
  };
  struct Landing {
    Peer* peer = nullptr;
    StreamRange piece;
    int chunk = -1;  // -1: received in place
  };
  std::vector<Source> sources;
  std::vector<Landing> landings;  // by message number
  ChunksSent chunks_sent;
};

struct ExchangePools {
  Chunks out, in;
  CycleLists lists;
  Result<void> reserve();
  // Ends the job where there is no room for what is on its way to or from other ranks.
  void require(bool nothing_on_its_way) const;
};

// What does not change between the cycles of one collective write.
struct CollectiveCall : Parties {
  UserData& data;
  Pack pack;
  comm::Transfers& transfers;
  ExchangePools& pools;
  NodePages* node;         // nullptr: pages are not shared
  NodeLeaders* leaders;    // nullptr: ranks of a node do not send together
  layout::Cursor& cursor;  // over the view, for whoever needs one
  PhaseTimes& times;
  Traffic& traffic;
};

// How many ranks of this node will come to fill that page of this rank: those that have bytes for
// it.
int fillers_of(const CollectiveCall& call, const Page& page);

// Sends, receives and fills all that belongs to `cycle`; the page, if any, is complete on return.
// `slices` stands at the first slice of this cycle (or of a later one) and is left behind the last.
class SliceQueue;
void run_cycle(const CollectiveCall& call, int cycle, SliceQueue& slices, Page* page);

// A rank's slices with one of look-ahead.
class SliceQueue {
 public:
  explicit SliceQueue(plan::Slices slices) : slices_(slices), head_(slices_.next()) {}
  bool has(int cycle) const noexcept { return head_ && head_->cycle == cycle; }
  int cycle() const noexcept { return head_ ? head_->cycle : INT_MAX; }  // of the next slice
  plan::Slice pop() {
    const plan::Slice s = *head_;
    head_ = slices_.next();
    return s;
  }

 private:
  plan::Slices slices_;
  std::optional<plan::Slice> head_;
};

}  // namespace penstock::exec
