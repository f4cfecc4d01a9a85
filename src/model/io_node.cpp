#include "model/io_node.hpp"

#include <algorithm>

namespace penstock::model {
namespace {

constexpr int64_t kFramesAhead = 2;

}  // namespace

IoNode::IoNode(const System& system, int64_t coming)
    : capacity_(system.capacity()),
      paging_(system.paging),
      order_(system.order),
      coming_(coming),
      free_frames_(system.frames()) {}

// In file order the disk may be waiting for a block that was paged out: then the frame is for that.
bool IoNode::can_take() const {
  const bool is_promised = order_ == Order::file && wanted();
  return free_frames_ > 0 && held_ < capacity_ && !is_promised;
}

void IoNode::take() {
  --free_frames_;
  --coming_;
  ++held_;
}

std::optional<int64_t> IoNode::start_write() {
  if (writing_ || memory_.empty()) return std::nullopt;
  const int64_t block = *memory_.begin();
  if (order_ == Order::file && block != begun_writes_) return std::nullopt;
  memory_.erase(memory_.begin());
  ++begun_writes_;
  writing_ = true;
  return block;
}

std::optional<IoNode::Transfer> IoNode::start_paging() {
  if (moving_pages_) return std::nullopt;
  if (const auto block = wanted(); block && free_frames_ > 0) return page_in(*block);
  if (paging_ == Paging::early && has_unused_memory() && !paged_.empty())
    return page_in(*paged_.begin());
  if (!needs_room()) return std::nullopt;
  if (const auto block = victim()) return page_out(*block);
  return std::nullopt;
}

void IoNode::written() {
  writing_ = false;
  ++free_frames_;
  --held_;
}

void IoNode::paged(const Transfer& transfer) {
  moving_pages_ = false;
  if (transfer.direction == Direction::in) {
    memory_.insert(transfer.block);
  } else {
    paged_.insert(transfer.block);
    ++free_frames_;
  }
}

// The block on the paging disk without which the output disk stands still.
std::optional<int64_t> IoNode::wanted() const {
  if (writing_ || paged_.empty()) return std::nullopt;
  const int64_t first = *paged_.begin();
  const bool nothing_else = order_ == Order::memory ? memory_.empty() : first == begun_writes_;
  return nothing_else ? std::optional(first) : std::nullopt;
}

// For the next two blocks of the application, as far as the buffer takes them: while one frame is
// being filled, the paging disk already frees another, and neither waits for the other.
bool IoNode::needs_room() const {
  const int64_t soon = std::min({kFramesAhead, coming_, capacity_ - held_});
  return free_frames_ < soon || (free_frames_ == 0 && wanted());
}

// The newest: of all it is needed last. Never the one that the disk writes next in file order.
std::optional<int64_t> IoNode::victim() const {
  if (memory_.empty()) return std::nullopt;
  const int64_t newest = *memory_.rbegin();
  if (order_ == Order::file && newest == begun_writes_) return std::nullopt;
  return newest;
}

IoNode::Transfer IoNode::page_in(int64_t block) {
  paged_.erase(block);
  --free_frames_;
  moving_pages_ = true;
  return {Direction::in, block};
}

IoNode::Transfer IoNode::page_out(int64_t block) {
  memory_.erase(block);
  moving_pages_ = true;
  return {Direction::out, block};
}

}  // namespace penstock::model
