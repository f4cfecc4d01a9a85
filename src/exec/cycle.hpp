// One cycle of an exchange by messages: this rank's slices go out, and a
// writer's file page is filled. Messages are at most kMessageBytes, from and into a fixed
// number of chunks, so memory does not follow the number of ranks or segments; contiguous
// data is sent and received in place.
//
// No rank can wait for ever: every rank sends in writer order and receives in
// rank order, so the lowest unfinished message of the lowest rank is always in flight on both
// sides.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "exec/chunks.hpp"
#include "exec/peers.hpp"
#include "exec/pipeline.hpp"
#include "exec/user_data.hpp"
#include "io/mechanism.hpp"
#include "layout/coverage.hpp"
#include "plan/plan.hpp"

namespace penstock::exec {

// A power of two, so that cuts between messages keep the granule of a coverage.
inline constexpr int64_t kMessageBytes = int64_t{256} << 10;
inline constexpr int kChunks = 8;     // in each direction
inline constexpr int kInFlight = 64;  // messages in flight in each direction

struct ExchangePools {
  Chunks out, in;
  Result<void> reserve();
};

// What does not change between the cycles of one collective write.
struct CollectiveCall {
  const plan::Plan& plan;
  const plan::Crowd& crowd;
  const layout::FileView& view;
  StreamRange own;
  plan::Summary summary;
  int rank;
  UserData& data;
  comm::Transfers& transfers;
  ExchangePools& pools;
  std::vector<Peer>& peers;
  PhaseTimes& times;
  Traffic& traffic;
};

// A writer's file page in one cycle. Without a lease (none could be had) the bytes are received and
// dropped, so that nobody hangs; the caller has recorded the fault.
struct PageToFill {
  int writer;
  Extent where;
  const io::Lease* lease;      // or nullptr
  layout::Coverage* coverage;  // of `where`
};

// Sends and receives all that belongs to `cycle`; the page, if any, is complete on return. `slices`
// stands at the first slice of this cycle (or of a later one) and is left behind the last.
class SliceQueue;
void run_cycle(const CollectiveCall& call, int cycle, SliceQueue& slices, const PageToFill* page);

// A rank's slices with one of look-ahead.
class SliceQueue {
 public:
  explicit SliceQueue(plan::Slices slices) : slices_(slices), head_(slices_.next()) {}
  bool has(int cycle) const noexcept { return head_ && head_->cycle == cycle; }
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
