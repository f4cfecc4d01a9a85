// The segment: a board for each slot of each rank of the node, then the pages of those that write.
#include "exec/node_pages.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/futex.hpp"
#include "base/keep_for_ever.hpp"
#include "base/units.hpp"
#include "comm/agreement.hpp"
#include "exec/abandon.hpp"

namespace penstock::exec {
namespace {

constexpr int64_t kGrowth = int64_t{1} << 20;       // segments grow by whole MiB
constexpr int64_t kLargestPage = int64_t{1} << 30;  // shared memory is there before it is used

// Collective over `node`, the ranks of `all` that are on one: their numbers there.
Result<std::vector<int>> numbers_of(comm::Comm& node, const comm::Comm& all) {
  std::vector<int> ranks(size_t(node.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  if (node.size() == all.size()) return ranks;
  const int mine = all.rank();
  const Result<void> gathered =
      node.allgather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(ranks)));
  return gathered.map([&] { return std::move(ranks); });
}

}  // namespace

// In the segment. Written by the writer before `open` says so, read by those that come.
struct alignas(64) NodePages::Board {
  FutexWord open;     // the stamp of the cycle that may be filled
  FutexWord arrived;  // ranks that have left
  uint32_t fillers;
  int64_t at;  // of the page's first byte, from the segment's begin; -1: there is no memory
  Extent where;
};

// --- Making it ---

Result<std::unique_ptr<NodePages>> NodePages::make(comm::Comm& comm,
                                                   std::unique_ptr<comm::Comm> node,
                                                   io::MechanismFile& file) {
  auto ranks = numbers_of(*node, comm);
  if (!ranks) return tl::unexpected(std::move(ranks).error());
  auto pages = std::unique_ptr<NodePages>(
      new NodePages(std::move(node), *std::move(ranks), file, comm.cores_per_node()));
  (void)pages->all_can();
  return pages;
}

// Boards are found by arithmetic, so all must count alike; and leases must be able to lie there.
bool NodePages::all_can() {
  const Result<void> mine = file_.use_memory({});
  comm::Agreement agreement;
  const auto same_slots = agreement.alike(slots_);
  const auto cannot = agreement.some(!mine);
  or_abandon(agreement.reach(*node_));
  if (!mine) return off(mine.error().message());
  if (!agreement[same_slots]) return off("ranks have unequal numbers of slots");
  return !agreement[cannot] || off("another rank's mechanism has memory of its own");
}

NodePages::NodePages(std::unique_ptr<comm::Comm> node, std::vector<int> ranks,
                     io::MechanismFile& file, int cores)
    : node_(std::move(node)),
      ranks_(std::move(ranks)),
      file_(file),
      slots_(file.slots()),
      self_(node_->rank()),
      wait_(int(ranks_.size()) <= cores) {}

NodePages::~NodePages() { take_back(); }

int NodePages::index_of(int rank) const noexcept {
  const auto found = std::ranges::lower_bound(ranks_, rank);
  return found != ranks_.end() && *found == rank ? int(found - ranks_.begin()) : -1;
}

bool NodePages::holds(int rank) const noexcept {
  const int index = index_of(rank);
  return index >= 0 && index != self_;
}

NodePages::Board& NodePages::board(int index, int cycle) const noexcept {
  auto* boards = reinterpret_cast<Board*>(segment_->memory().data());
  return boards[1 + index * slots_ + cycle % slots_];
}

// Whether some writer has lost its part of the segment: in a board of nobody's.
FutexWord& NodePages::spoilt() const noexcept {
  return reinterpret_cast<Board*>(segment_->memory().data())->open;
}

// --- A call ---

bool NodePages::begin(const plan::Plan& plan) {
  first_stamp_ += stamps_of_call_;
  stamps_of_call_ = uint32_t(plan.cycles());
  if (ranks_.size() == 1 || never_) return false;
  if (plan.page_bytes() > kLargestPage) return not_now("a page would be larger than 1 GiB");
  if (segment_ != nullptr && spoilt() != 0) return off("an asynchronous queue was lost");
  const Layout wanted = layout_for(plan);
  if (wanted == layout_) return true;
  return reserve(wanted) && agreed(give_out(wanted));
}

// The same on all ranks of the node.
NodePages::Layout NodePages::layout_for(const plan::Plan& plan) const {
  Layout l;
  // One page more, so that a mechanism can let memory and file agree modulo the device's block.
  l.area_bytes = align_up(plan.page_bytes(), kPageStep) + kPageStep;
  for (size_t i = 0; i < ranks_.size(); ++i)
    if (plan.writer_of(ranks_[i])) l.writers.push_back(int(i));
  return l;
}

int64_t NodePages::boards_bytes() const noexcept {
  return align_up((1 + int64_t(ranks_.size()) * slots_) * int64_t(sizeof(Board)), kPageStep);
}

// All of the node have the same memory, or none has any.
bool NodePages::reserve(const Layout& wanted) {
  const int64_t bytes =
      boards_bytes() + int64_t(wanted.writers.size()) * slots_ * wanted.area_bytes;
  layout_ = {};
  if (segment_ != nullptr && size_t(bytes) <= segment_->memory().size()) return true;
  take_back();
  segment_.reset();
  auto made = node_->shared_segment({.bytes = size_t(align_up(bytes, kGrowth)),
                                     .zeroed_bytes = size_t(boards_bytes()),
                                     .room = comm::Room::when_used});
  if (!made) return off(made.error().message());
  segment_ = *std::move(made);
  return true;
}

// The file's leases are this rank's part of the segment from now on. The writers take the memory,
// each for itself: the kernel clears it, and so on as many cores.
Result<void> NodePages::give_out(const Layout& wanted) {
  layout_ = wanted;
  entered_.assign(wanted.writers.size() * size_t(slots_), false);
  if (Result<void> r = segment_->populate(0, size_t(boards_bytes())); !r) return r;
  const auto mine = std::ranges::lower_bound(wanted.writers, self_);
  if (mine == wanted.writers.end() || *mine != self_) return {};
  const int64_t first = (mine - wanted.writers.begin()) * slots_;
  const auto areas_bytes = size_t(slots_ * wanted.area_bytes);
  if (Result<void> r = segment_->populate(area_at(first), areas_bytes); !r) return r;
  segment_->expect_stores(area_at(first), areas_bytes);
  std::vector<std::span<std::byte>> buffers;
  for (int64_t area = first; area < first + slots_; ++area)
    buffers.push_back(segment_->memory().subspan(area_at(area), size_t(wanted.area_bytes)));
  Result<void> given = file_.use_memory(buffers);
  given_ = given_ || given.has_value();
  return given;
}

size_t NodePages::area_at(int64_t area) const noexcept {
  return size_t(boards_bytes() + area * layout_.area_bytes);
}

void NodePages::take_back() {
  if (given_) (void)file_.use_memory({});
  given_ = false;
}

void NodePages::rest() {
  take_back();
  layout_ = {};
}

// A rank whose pages must lie elsewhere spoils it for all of the node.
bool NodePages::agreed(const Result<void>& mine) {
  if (Result<void> r = agree_or_abandon(*node_, mine); !r) return off(r.error().message());
  return true;
}

bool NodePages::off(const std::string& why) {
  never_ = true;
  return not_now(why);
}

bool NodePages::not_now(const std::string& why) {
  rest();
  why_not_ = "pages are not shared on this node: " + why;
  return false;
}

// All learn of it in the next call: they meet before. The memory is nobody's from now on.
void NodePages::end() {
  if (!given_ || !file_.has_lost_memory()) return;
  spoilt() = 1;
  keep_for_ever(segment_);
}

// --- A cycle ---

void NodePages::open(const Page& page, int fillers) {
  Board& b = board(self_, page.cycle);
  b.arrived.store(0, std::memory_order_relaxed);
  b.fillers = uint32_t(fillers);
  b.at = page.usable() ? page.memory.data() - segment_->memory().data() : -1;
  b.where = page.where;
  b.open.store(stamp(page.cycle), std::memory_order_release);
  if (fillers > 0) futex_wake_all(b.open);
}

void NodePages::wait_until_filled(int cycle) {
  const Board& b = board(self_, cycle);
  wait_.until(b.arrived, [&](uint32_t arrived) { return arrived == b.fillers; });
}

NodePages::Place NodePages::enter(int writer_rank, int cycle) {
  const Board& b = board(index_of(writer_rank), cycle);
  wait_.until(b.open, [&](uint32_t open) { return open == stamp(cycle); });
  if (b.at >= 0) note_entered(b.at);
  return {b.at < 0 ? nullptr : segment_->memory().data() + b.at, b.where};
}

// The first time this rank comes to an area, it is going to store all over it.
void NodePages::note_entered(int64_t at) {
  const int64_t area = (at - boards_bytes()) / layout_.area_bytes;
  if (entered_[size_t(area)]) return;
  entered_[size_t(area)] = true;
  segment_->expect_stores(area_at(area), size_t(layout_.area_bytes));
}

void NodePages::leave(int writer_rank, int cycle) {
  Board& b = board(index_of(writer_rank), cycle);
  const uint32_t fillers = b.fillers;
  if (b.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == fillers) futex_wake_all(b.arrived);
}

}  // namespace penstock::exec
