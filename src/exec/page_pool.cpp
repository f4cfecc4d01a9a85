// The segment: a header, the guests' words, the slots' words, a hash table of the pages, then the
// slots' areas: a dirty map and a page each, with memory from the first stay on.
#include "exec/page_pool.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
#include <utility>

#include "base/clock.hpp"
#include "base/futex.hpp"
#include "base/seeded_fault.hpp"
#include "base/units.hpp"
#include "exec/page_pool_segment.hpp"

namespace penstock::exec {
namespace {

constexpr int kLooks = 50;  // that give the core away, before a sleep

// false: not done after a long sleep.
template <class Done>
bool wait(const FutexWord& word, Done&& done) {
  const double begin_s = now_s();
  for (int looks = 0;; ++looks) {
    const uint32_t seen = word.load(std::memory_order_acquire);
    if (done(seen)) return true;
    if (looks < kLooks)
      ::sched_yield();
    else if (now_s() - begin_s < double(kLongestSleep_ns) * 1e-9)
      futex_wait(word, seen, kLongestSleep_ns);
    else
      return false;
  }
}

// A slot's state, its stay's number, whether it is wanted, and its pins in one word.
enum class State : uint64_t { free = 0, filling = 1, leaving = 2 };
constexpr uint64_t kNeverUsed = 0;
constexpr uint64_t kPins = 0x7fffffff, kWanted = 0x80000000;

uint64_t word_of(State state, uint32_t number, uint64_t pins) {
  return (uint64_t{number} << 34) | (uint64_t(state) << 32) | pins;
}
State state_of(uint64_t word) { return State((word >> 32) & 3); }
uint32_t number_of(uint64_t word) { return uint32_t(word >> 34); }
bool is_filling(uint64_t word, const PagePool::Stay& stay) {
  return state_of(word) == State::filling && number_of(word) == stay.number;
}
constexpr int64_t kPiece = 64 * kKiB;  // of a page, that is mapped at least
constexpr double kNobodyWrites = 0;
constexpr double kLongestTurn_s = 0.02;  // then a writer is thought dead, or its device slow
constexpr double kLackSeconds = 0.5;     // where there was no memory, it is asked for again
constexpr uint64_t kNoStay = 0;
uint64_t id_of(const PagePool::Stay& stay) { return (uint64_t(stay.slot) + 1) << 32 | stay.number; }
// Guests that share a bit are looked at together.
constexpr int kGuestBits = 64;
uint64_t bit_of(int guest) { return uint64_t{1} << (guest % kGuestBits); }
uint32_t next_number(uint32_t number) { return (number + 1) & ((uint32_t{1} << 30) - 1); }

}  // namespace

// --- Making it ---

size_t PagePool::map_bytes(PoolShape shape) {
  return size_t(
      align_up(shape.page_bytes / DirtyMap::kWordBytes * int64_t(sizeof(uint64_t)), kPageStep));
}

size_t PagePool::table_bytes(PoolShape shape) {
  const auto slots = size_t(shape.slots);
  return size_t(align_up(int64_t(sizeof(Header) + slots * (sizeof(Slot) + sizeof(uint32_t)) +
                                 size_t(shape.guests) * sizeof(Guest)),
                         kPageStep));
}

size_t PagePool::zeroed_bytes_for(PoolShape shape) { return shape.at + table_bytes(shape); }

size_t PagePool::bytes_for(PoolShape shape) {
  return zeroed_bytes_for(shape) +
         size_t(shape.slots) * (map_bytes(shape) + size_t(shape.page_bytes));
}

Result<std::unique_ptr<PagePool>> PagePool::make(std::shared_ptr<comm::SharedSegment> segment,
                                                 PoolShape shape) {
  if (Result<void> r = segment->populate(shape.at, table_bytes(shape)); !r)
    return tl::unexpected(std::move(r).error());
  return std::unique_ptr<PagePool>(new PagePool(std::move(segment), shape));
}

PagePool::PagePool(std::shared_ptr<comm::SharedSegment> segment, PoolShape shape)
    : segment_(std::move(segment)),
      shape_(shape),
      header_(reinterpret_cast<Header*>(segment_->memory().data() + shape.at)),
      come_to_(size_t(shape.slots)) {}

PagePool::Guest* PagePool::guests() const noexcept { return reinterpret_cast<Guest*>(header_ + 1); }

PagePool::Slot* PagePool::slots() const noexcept {
  return reinterpret_cast<Slot*>(guests() + shape_.guests);
}

uint32_t& PagePool::bucket(int64_t page) const noexcept {
  auto* buckets = reinterpret_cast<uint32_t*>(slots() + shape_.slots);
  return buckets[page % shape_.slots];
}

size_t PagePool::area_at(int slot) const noexcept {
  return zeroed_bytes_for(shape_) + size_t(slot) * (map_bytes(shape_) + size_t(shape_.page_bytes));
}

std::byte* PagePool::memory(const Stay& stay) const noexcept {
  return segment_->memory().data() + area_at(stay.slot) + map_bytes(shape_);
}

DirtyMap PagePool::dirty(const Stay& stay) const noexcept {
  auto* words = reinterpret_cast<DirtyMap::Word*>(segment_->memory().data() + area_at(stay.slot));
  return {{words, size_t(shape_.page_bytes / DirtyMap::kWordBytes)},
          extent(stay.page),
          slots()[stay.slot].touched};
}

// --- Filling ---

bool PagePool::pin(const Stay& stay) noexcept {
  Slot& slot = slots()[stay.slot];
  uint64_t word = slot.word.load(std::memory_order_relaxed);
  while (is_filling(word, stay))
    if (slot.word.compare_exchange_weak(word, word + 1, std::memory_order_acquire)) {
      note_use(slot);
      return true;
    }
  return false;
}

// The page that was used last of all stays so without a tick, which all ranks would have to see.
void PagePool::note_use(Slot& slot) noexcept {
  const uint64_t last = slot.last_use.load(std::memory_order_relaxed);
  if (last != kNeverUsed && last == header_->clock.load(std::memory_order_relaxed)) return;
  slot.last_use.store(header_->clock.fetch_add(1, std::memory_order_relaxed) + 1,
                      std::memory_order_relaxed);
}

std::pair<PagePool::Pinning, PagePool::Stay> PagePool::pin(int64_t page) {
  const std::lock_guard lock(header_->lock);
  if (const auto stay = find_locked(page))
    return {pin(*stay) ? Pinning::pinned : Pinning::leaving, *stay};
  if (const auto stay = settle_locked(page)) return {Pinning::pinned, *stay};
  return {used() < shape_.slots ? Pinning::no_memory : Pinning::no_room, Stay{}};
}

bool PagePool::is_mapped(const Stay& stay) const noexcept {
  return come_to_[size_t(stay.slot)].load(std::memory_order_relaxed) == Come::to_all;
}

// A small file fills one page in part, and the kernel clears what is mapped.
Extent PagePool::come_to(const Stay& stay, Extent bytes) noexcept {
  const Extent page = extent(stay.page);
  std::atomic<Come>& come = come_to_[size_t(stay.slot)];
  if (come.load(std::memory_order_relaxed) == Come::to_all) return page;
  const Extent around{
      page.begin + align_down(bytes.begin - page.begin, kPiece),
      std::min(page.end, capped_sum(page.begin, align_up(bytes.end - page.begin, kPiece)))};
  const bool first = come.exchange(Come::to_a_part, std::memory_order_relaxed) == Come::never;
  const Extent part = first ? around : page;
  expect_stores(stay, part);
  if (part == page) come.store(Come::to_all, std::memory_order_relaxed);
  return part;
}

void PagePool::expect_stores(const Stay& stay, Extent bytes) noexcept {
  constexpr int64_t kFilePerMapByte = DirtyMap::kWordBytes / int64_t(sizeof(DirtyMap::Word));
  const Off page = extent(stay.page).begin;
  const int64_t begin = bytes.begin - page, end = bytes.end - page;
  const int64_t map_begin = align_down(begin / kFilePerMapByte, kPageStep);
  const int64_t map_end = align_up(divide_up(end, kFilePerMapByte), kPageStep);
  segment_->expect_stores(area_at(stay.slot) + size_t(map_begin), size_t(map_end - map_begin));
  segment_->expect_stores(area_at(stay.slot) + map_bytes(shape_) + size_t(begin),
                          size_t(end - begin));
}

// The kernel clears the memory, which takes about as long as filling it: not under the lock.
bool PagePool::add_slot(double now_s) noexcept {
  if (now_s < header_->lack_ends_s.load(std::memory_order_relaxed)) return false;
  int slot = used();
  do {
    if (slot == shape_.slots) return true;
  } while (!header_->used.compare_exchange_weak(slot, slot + 1, std::memory_order_relaxed));
  if (!segment_->populate(area_at(slot), map_bytes(shape_) + size_t(shape_.page_bytes))) {
    header_->lack_ends_s.store(now_s + kLackSeconds, std::memory_order_relaxed);
    int mine = slot + 1;  // given back, but where somebody has come behind it
    if (!header_->used.compare_exchange_strong(mine, slot)) ++header_->unusable;
    return false;
  }
  if (segment_->is_used_again()) dirty({.slot = slot, .page = 0}).clear_all();
  const std::lock_guard lock(header_->lock);
  slots()[slot].next = std::exchange(header_->first_free, uint32_t(slot) + 1);
  return true;
}

std::optional<PagePool::Stay> PagePool::find_locked(int64_t page) const noexcept {
  for (uint32_t at = bucket(page); at != 0;) {
    const Slot& slot = slots()[at - 1];
    if (slot.page.load(std::memory_order_relaxed) == page)
      return Stay{int(at) - 1, number_of(slot.word.load(std::memory_order_relaxed)), page};
    at = slot.next;
  }
  return std::nullopt;
}

std::optional<PagePool::Stay> PagePool::find(int64_t page) const noexcept {
  const std::lock_guard lock(header_->lock);
  return find_locked(page);
}

// In a slot of its own, pinned once.
std::optional<PagePool::Stay> PagePool::settle_locked(int64_t page) noexcept {
  if (header_->first_free == 0) return std::nullopt;
  const int free = int(header_->first_free) - 1;  // became free last, and is warm
  Slot& slot = slots()[free];
  header_->first_free = slot.next;
  const uint32_t number = number_of(slot.word.load(std::memory_order_relaxed));
  slot.page.store(page, std::memory_order_relaxed);
  slot.dirty_bytes.store(0, std::memory_order_relaxed);
  slot.writer.store(-1, std::memory_order_relaxed);
  slot.came.store(0, std::memory_order_relaxed);
  slot.came_s.store(now_s(), std::memory_order_relaxed);
  note_use(slot);
  slot.next = std::exchange(bucket(page), uint32_t(free) + 1);
  header_->held.fetch_add(1, std::memory_order_relaxed);
  slot.word.store(word_of(State::filling, number, 1), std::memory_order_release);
  return Stay{free, number, page};
}

bool PagePool::unpin(const Stay& stay, int64_t newly_dirty) noexcept {
  Slot& slot = slots()[stay.slot];
  const int64_t before =
      newly_dirty > 0 ? slot.dirty_bytes.fetch_add(newly_dirty, std::memory_order_relaxed) : 0;
  const bool full = newly_dirty > 0 && before + newly_dirty >= shape_.page_bytes;
  const uint64_t old = slot.word.fetch_sub(1, std::memory_order_acq_rel);
  if (state_of(old) == State::leaving && (old & kPins) == 1) {
    slot.unpinned.fetch_add(1, std::memory_order_release);
    futex_wake_all(slot.unpinned);
  }
  return full;
}

// What a guest writes down and then sees of the slot, and what who closes it writes there and then
// sees of the guest, are in one order: one of the two sees the other.
bool PagePool::hold(int guest, const Stay& stay) noexcept {
  guests()[guest].holds.store(id_of(stay), std::memory_order_seq_cst);
  if (is_filling(slots()[stay.slot].word.load(std::memory_order_seq_cst), stay)) return true;
  let_go(guest, stay);
  return false;
}

void PagePool::let_go(int guest, const Stay& stay) noexcept {
  guests()[guest].holds.store(kNoStay, std::memory_order_seq_cst);
  Slot& slot = slots()[stay.slot];
  if (state_of(slot.word.load(std::memory_order_seq_cst)) != State::leaving) return;
  slot.unpinned.fetch_add(1, std::memory_order_release);
  futex_wake_all(slot.unpinned);
}

void PagePool::come_as_guest(int guest, const Stay& stay) noexcept {
  slots()[stay.slot].came.fetch_or(bit_of(guest), std::memory_order_relaxed);
}

// Of a page without pins: nobody comes any more.
bool PagePool::is_held(const Stay& stay) const noexcept {
  if (seeded_fault("guest_forgotten")) return false;
  uint64_t came = slots()[stay.slot].came.load(std::memory_order_relaxed);
  for (; came != 0; came &= came - 1)
    for (int g = std::countr_zero(came); g < shape_.guests; g += kGuestBits)
      if (guests()[g].holds.load(std::memory_order_seq_cst) == id_of(stay)) return true;
  return false;
}

// --- Leaving ---

bool PagePool::want(const Stay& stay) noexcept {
  Slot& slot = slots()[stay.slot];
  uint64_t word = slot.word.load(std::memory_order_relaxed);
  while (is_filling(word, stay) && (word & kWanted) == 0)
    if (slot.word.compare_exchange_weak(word, word | kWanted, std::memory_order_acq_rel))
      return true;
  return false;
}

bool PagePool::close(const Stay& stay, int writer) noexcept {
  Slot& slot = slots()[stay.slot];
  uint64_t word = slot.word.load(std::memory_order_relaxed);
  for (;;) {
    if (!is_filling(word, stay)) return false;
    const uint64_t leaving = word_of(State::leaving, stay.number, word & kPins);
    if (slot.word.compare_exchange_weak(word, leaving, std::memory_order_seq_cst)) break;
  }
  slot.writer.store(writer, std::memory_order_release);
  wait_until_filled(stay);
  return true;
}

void PagePool::wait_until_filled(const Stay& stay) const noexcept {
  const Slot& slot = slots()[stay.slot];
  const auto nobody_fills = [&](uint32_t) {
    return (slot.word.load(std::memory_order_acquire) & kPins) == 0 && !is_held(stay);
  };
  while (!wait(slot.unpinned, nobody_fills)) continue;
}

// Who closed it may have ended while it waited for those who fill it.
bool PagePool::take_over(const Stay& stay, int from, int to) noexcept {
  {
    const std::lock_guard lock(header_->lock);
    Slot& slot = slots()[stay.slot];
    const uint64_t word = slot.word.load(std::memory_order_acquire);
    if (state_of(word) != State::leaving || number_of(word) != stay.number) return false;
    if (!slot.writer.compare_exchange_strong(from, to, std::memory_order_acq_rel)) return false;
    slot.taken_over = true;
  }
  wait_until_filled(stay);
  return true;
}

void PagePool::release(const Stay& stay, int writer) noexcept {
  Slot& slot = slots()[stay.slot];
  const auto is_the_writers = [&] {
    return slot.word.load(std::memory_order_acquire) == word_of(State::leaving, stay.number, 0) &&
           slot.writer.load(std::memory_order_acquire) == writer;
  };
  if (!is_the_writers()) return;
  const bool complete = slot.dirty_bytes.load(std::memory_order_relaxed) >= shape_.page_bytes;
  dirty(stay).clear();
  {
    const std::lock_guard lock(header_->lock);
    if (!is_the_writers()) return;
    uint32_t* at = &bucket(stay.page);
    while (*at != uint32_t(stay.slot) + 1) at = &slots()[*at - 1].next;
    *at = slot.next;
    // Who was taken for dead may write on from this memory: what it finds there stays this page's.
    if (slot.taken_over)
      header_->unusable.fetch_add(1, std::memory_order_relaxed);
    else
      slot.next = std::exchange(header_->first_free, uint32_t(stay.slot) + 1);
    slot.word.store(word_of(State::free, next_number(stay.number), 0), std::memory_order_release);
    // While nobody has the slot: those who wait for the next stay would take it for theirs.
    slot.left.store(next_number(stay.number), std::memory_order_release);
  }
  header_->held.fetch_sub(1, std::memory_order_release);
  if (complete) header_->completed.fetch_add(1, std::memory_order_release);
  futex_wake_all(slot.left);
  header_->departures.fetch_add(1, std::memory_order_release);
  futex_wake_all(header_->departures);
}

bool PagePool::offer(const Stay& full) noexcept {
  return std::ranges::any_of(header_->offers, [&](std::atomic<uint64_t>& place) {
    uint64_t none = kNoStay;
    return place.compare_exchange_strong(none, id_of(full), std::memory_order_release,
                                         std::memory_order_relaxed);
  });
}

bool PagePool::wants_writer(double now_s) const noexcept {
  const double since_s = header_->writing_since_s.load(std::memory_order_relaxed);
  return has_offers() && (since_s == kNobodyWrites || now_s > since_s + kLongestTurn_s);
}

PagePool::Turn::Turn(PagePool& pool, double now_s) noexcept : pool_(pool), since_s_(now_s) {
  pool_.header_->writing_since_s.store(now_s, std::memory_order_relaxed);
}

// Who has begun since is still writing.
PagePool::Turn::~Turn() {
  double mine = since_s_;
  pool_.header_->writing_since_s.compare_exchange_strong(mine, kNobodyWrites,
                                                         std::memory_order_relaxed);
}

bool PagePool::has_offers() const noexcept {
  return std::ranges::any_of(header_->offers, [](const std::atomic<uint64_t>& place) {
    return place.load(std::memory_order_relaxed) != kNoStay;
  });
}

std::optional<PagePool::Stay> PagePool::take_offer() noexcept {
  for (std::atomic<uint64_t>& place : header_->offers) {
    if (place.load(std::memory_order_relaxed) == kNoStay) continue;
    const uint64_t offer = place.exchange(kNoStay, std::memory_order_acquire);
    if (offer == kNoStay) continue;
    const int slot = int(offer >> 32) - 1;
    return Stay{slot, uint32_t(offer), slots()[slot].page.load(std::memory_order_relaxed)};
  }
  return std::nullopt;
}

bool PagePool::wait_until_left(const Stay& stay) const noexcept {
  return wait(slots()[stay.slot].left, [&](uint32_t left) { return left != stay.number; });
}

std::optional<PagePool::Stay> PagePool::least_recently_used() const noexcept {
  std::optional<Stay> oldest;
  uint64_t oldest_use = 0;
  for (int i = 0; i < used(); ++i) {
    const std::optional<Seen> seen = look(i);
    if (!seen || seen->wanted || seen->leaving) continue;
    const uint64_t use = slots()[i].last_use.load(std::memory_order_relaxed);
    if (oldest && oldest_use <= use) continue;
    oldest = seen->stay;
    oldest_use = use;
  }
  return oldest;
}

uint32_t PagePool::departures() const noexcept {
  return header_->departures.load(std::memory_order_acquire);
}

uint32_t PagePool::completed() const noexcept {
  return header_->completed.load(std::memory_order_acquire);
}

bool PagePool::wait_for_departure(uint32_t seen) const noexcept {
  return wait(header_->departures, [&](uint32_t now) { return now != seen; });
}

bool PagePool::look_for_room(uint32_t seen, Returns returns, int looks,
                             double seconds) const noexcept {
  const double end_s = now_s() + seconds;
  const bool writes = returns == Returns::soon;
  for (double s = now_s(); departures() == seen && !(writes && wants_writer(s)); s = now_s()) {
    if (looks-- == 0 || s > end_s) return false;
    ::sched_yield();
  }
  return true;
}

int PagePool::held() const noexcept { return header_->held.load(std::memory_order_acquire); }

int PagePool::used() const noexcept { return header_->used.load(std::memory_order_acquire); }

std::optional<PagePool::Seen> PagePool::look(int i) const noexcept {
  const Slot& slot = slots()[i];
  const uint64_t word = slot.word.load(std::memory_order_acquire);
  if (state_of(word) == State::free) return std::nullopt;
  return Seen{{i, number_of(word), slot.page.load(std::memory_order_relaxed)},
              (word & kWanted) != 0,
              state_of(word) == State::leaving,
              slot.writer.load(std::memory_order_acquire),
              slot.came_s.load(std::memory_order_relaxed)};
}

bool PagePool::usable() const noexcept {
  return header_->unusable.load(std::memory_order_relaxed) < shape_.slots;
}

void PagePool::note_several_handles() noexcept {
  header_->several_handles.store(true, std::memory_order_release);
}

bool PagePool::has_several_handles() const noexcept {
  return header_->several_handles.load(std::memory_order_acquire);
}

PageLosses& PagePool::losses() const noexcept { return header_->losses; }

}  // namespace penstock::exec
