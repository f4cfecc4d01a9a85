// The segment: the boards, each with the sizes of the parts, then their loads.
#include "exec/node_outbox.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "base/futex.hpp"
#include "base/units.hpp"
#include "exec/abandon.hpp"

namespace penstock::exec {
namespace {

constexpr int64_t kLine = 64;  // boards and their sizes begin on cache lines
// Of a job with very many writers: smaller loads would no longer be large messages.
constexpr int64_t kLeastLoadBytes = int64_t{64} << 10;
static_assert(kLeastLoadBytes <= NodeOutbox::kMostLoadBytes);

}  // namespace

// In the segment. Of one bundle at a time.
struct alignas(kLine) NodeOutbox::Board {
  FutexWord open;    // the stamp of the bundle
  FutexWord sized;   // ranks that have said how many bytes they bring
  FutexWord load;    // the load of the bundle that may be packed
  FutexWord packed;  // bytes of it that are there
  uint32_t parts;
};

// --- Making it ---

Result<std::unique_ptr<NodeOutbox>> NodeOutbox::make(comm::Comm& comm,
                                                     std::unique_ptr<comm::Comm> node) {
  auto map = map_nodes(comm);
  if (!map) return tl::unexpected(std::move(map).error());
  return std::unique_ptr<NodeOutbox>(new NodeOutbox(comm, std::move(node), *std::move(map)));
}

NodeOutbox::NodeOutbox(comm::Comm& comm, std::unique_ptr<comm::Comm> own, NodeMap map)
    : comm_(comm),
      node_(std::move(own)),
      map_(std::move(map)),
      wait_(node_->size() <= comm.cores_per_node()) {
  for (int place = 0; place < node_->size(); ++place) ranks_.push_back(map_.member(node(), place));
}

// --- A call ---

bool NodeOutbox::begin(const plan::Plan& plan, int64_t outbox_bytes) {
  if (never_ || map_.nodes() == 1 || map_.largest() == 1) return false;
  shape_ = shape_for(plan, outbox_bytes);
  groups_ = int(divide_up(plan.writers(), shape_.boards));
  first_stamp_ += stamps_of_call_;
  stamps_of_call_ = uint32_t(plan.cycles()) * uint32_t(groups_);
  if (shape_.boards <= most_boards_ && shape_.bytes() <= most_loads_bytes_) return true;
  // Nodes whose bytes come otherwise than their writers expect would hang the job: all or none.
  Result<void> agreed = agree_or_abandon(comm_, reserve(shape_));
  if (agreed) return true;
  never_ = true;
  why_not_ = "nodes do not send together: " + agreed.error().message();
  return false;
}

// Nothing in it depends on the node, so that all ranks of the job cut alike.
NodeOutbox::Shape NodeOutbox::shape_for(const plan::Plan& plan, int64_t outbox_bytes) const {
  const int64_t writers = std::max(plan.writers(), 1);
  const auto even = int64_t(std::bit_floor(uint64_t(outbox_bytes / writers)));
  // No more than a page: only ranks whose bytes overlap have more for a writer at a time.
  const int64_t load =
      std::min({std::clamp(even, kLeastLoadBytes, kMostLoadBytes),
                align_up(std::max<int64_t>(plan.page_bytes(), 1), kPageStep), outbox_bytes});
  return {load, int(std::min(writers, outbox_bytes / load))};
}

Result<void> NodeOutbox::reserve(const Shape& wanted) {
  most_boards_ = std::max(most_boards_, wanted.boards);
  most_loads_bytes_ = std::max(most_loads_bytes_, wanted.bytes());
  segment_.reset();
  auto made = node_->shared_segment(
      {.bytes = size_t(loads_begin() + most_loads_bytes_), .zeroed_bytes = size_t(loads_begin())});
  if (!made) return tl::unexpected(std::move(made).error());
  segment_ = *std::move(made);
  return {};
}

int NodeOutbox::leader_of(int node, int writer) const noexcept {
  return map_.member(node, board_of(writer) % map_.size_of(node));
}

// --- Where things are ---

int64_t NodeOutbox::board_step() const noexcept {
  return int64_t(sizeof(Board)) + align_up(node_->size() * int64_t(sizeof(int64_t)), kLine);
}

int64_t NodeOutbox::loads_begin() const noexcept {
  return align_up(most_boards_ * board_step(), kPageStep);
}

NodeOutbox::Board& NodeOutbox::board(int writer) const noexcept {
  std::byte* const at = segment_->memory().data() + board_of(writer) * board_step();
  return *reinterpret_cast<Board*>(at);
}

std::span<int64_t> NodeOutbox::sizes(int writer) const noexcept {
  std::byte* const at =
      segment_->memory().data() + board_of(writer) * board_step() + int64_t(sizeof(Board));
  return {reinterpret_cast<int64_t*>(at), size_t(node_->size())};
}

std::byte* NodeOutbox::load(int writer) const noexcept {
  return segment_->memory().data() + loads_begin() + board_of(writer) * shape_.load_bytes;
}

uint32_t NodeOutbox::stamp(Name bundle) const noexcept {
  return first_stamp_ + uint32_t(bundle.cycle) * uint32_t(groups_) +
         uint32_t(group_of(bundle.writer)) + 1;
}

// --- A bundle ---

void NodeOutbox::open(Name bundle, int parts) {
  Board& b = board(bundle.writer);
  std::ranges::fill(sizes(bundle.writer), 0);  // who brings nothing has no place
  b.sized.store(0, std::memory_order_relaxed);
  b.load.store(0, std::memory_order_relaxed);
  b.packed.store(0, std::memory_order_relaxed);
  b.parts = uint32_t(parts);
  b.open.store(stamp(bundle), std::memory_order_release);
  futex_wake_all(b.open);
}

void NodeOutbox::bring(Name bundle, int64_t bytes) {
  Board& b = board(bundle.writer);
  wait_.until(b.open, [&](uint32_t open) { return open == stamp(bundle); });
  const uint32_t parts = b.parts;  // behind the last arrival the board may be another bundle's
  sizes(bundle.writer)[size_t(node_->rank())] = bytes;
  if (b.sized.fetch_add(1, std::memory_order_acq_rel) + 1 == parts) futex_wake_all(b.sized);
}

NodeOutbox::Placing NodeOutbox::placing(int writer) {
  const Board& b = board(writer);
  wait_.until(b.sized, [&](uint32_t sized) { return sized == b.parts; });
  const std::span<const int64_t> all = sizes(writer);
  const int64_t before = std::reduce(all.begin(), all.begin() + node_->rank(), int64_t{0});
  return {before, std::reduce(all.begin() + node_->rank(), all.end(), before)};
}

std::byte* NodeOutbox::enter(int writer, int load_number) {
  wait_.until(board(writer).load, [&](uint32_t open) { return open == uint32_t(load_number); });
  return load(writer);
}

void NodeOutbox::leave(int writer, int64_t bytes, int64_t load_bytes) {
  Board& b = board(writer);
  const auto n = uint32_t(bytes);
  if (b.packed.fetch_add(n, std::memory_order_acq_rel) + n == uint32_t(load_bytes))
    futex_wake_all(b.packed);
}

std::span<const std::byte> NodeOutbox::wait_until_packed(int writer, int64_t bytes) {
  wait_.until(board(writer).packed, [&](uint32_t packed) { return packed == uint32_t(bytes); });
  return {load(writer), size_t(bytes)};
}

void NodeOutbox::next_load(int writer) {
  Board& b = board(writer);
  b.packed.store(0, std::memory_order_relaxed);
  b.load.fetch_add(1, std::memory_order_release);
  futex_wake_all(b.load);
}

}  // namespace penstock::exec
