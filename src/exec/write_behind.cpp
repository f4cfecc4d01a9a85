// Bytes become accepted: into the pages, or past them. How pages leave is in
// write_behind_leaving.cpp.
#include "exec/write_behind.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/clock.hpp"
#include "base/units.hpp"
#include "exec/abandon.hpp"
#include "exec/alone.hpp"
#include "exec/beyond_files.hpp"
#include "exec/load.hpp"
#include "exec/write_behind_pages.hpp"
#include "exec/write_behind_shape.hpp"

namespace penstock::exec {
// One call: where it is in its stream, its view and its memory.
class WriteBehind::Filling final : public Shipping::Stream {
 public:
  Filling(const WriteRequest& request, int64_t most_in_place_bytes)
      : view(*request.view),
        own(request.range),
        data(request.memory, request.memory_type, request.memory_count, own.begin),
        cursor(view.cursor()),
        returns(request.returns),
        most_in_place_bytes_(most_in_place_bytes) {}

  // Bytes that follow each other in the file from stream position `at` on, as many as one write
  // takes.
  int64_t contiguous_at(int64_t at) {
    seek(at);
    const layout::Run run = cursor.next(std::min(own.end - at, most_in_place_bytes_));
    return run.count == 1 || run.stride == run.block ? run.bytes() : run.block;
  }
  void copy(std::byte* page, Off origin, StreamRange part) {
    seek(part.begin);
    data.transfer(page, origin, cursor, part.begin, part.size());
  }
  int64_t mark(DirtyMap dirty, StreamRange part) {
    seek(part.begin);
    return dirty.mark(cursor, part.size());
  }
  layout::Run run_at(StreamRange range) override {
    seek(range.begin);
    return cursor.next(range.size());
  }
  void pack(std::byte* out, StreamRange range) override {
    data.pack(out, range.begin, range.size());
  }
  // Past the pages, and what the sync policy says to that. `noted`: the turn that these bytes were
  // noted in; `taken`: the one that ended when the sync failed. How many of what was taken the call
  // tells itself.
  int64_t went_past(StreamRange range, const Result<bool>& synced, int64_t noted, int64_t taken) {
    if (turn_ != noted) forget_unsynced();  // what was before is certain, or told as lost
    turn_ = noted;
    written_bytes += range.size();
    unsynced_bytes_ += range.size();
    if (!uncertain_from_) uncertain_from_ = range.begin;
    if (synced && !*synced) return 0;
    int64_t told = 0;
    if (!synced) failed = synced.error();
    if (!synced && taken == noted) {
      certain_end_ = uncertain_from_;
      told = uncertain_bytes = unsynced_bytes_;
      written_bytes -= told;
    }
    forget_unsynced();
    return told;
  }
  // Of the stream, where this has come to `at`: a sync that failed may have lost what was before.
  int64_t certain_end(int64_t at) const { return certain_end_.value_or(at); }

  const layout::FileView& view;
  const StreamRange own;
  UserData data;
  layout::Cursor cursor;
  const Returns returns;
  Spent spent;
  int64_t written_bytes = 0;    // past the pages, or with bytes that were in them before
  int64_t uncertain_bytes = 0;  // that went past the pages before a sync failed
  std::optional<Error> failed;

 private:
  void seek(int64_t at) {
    if (cursor.position() != at) cursor.seek(at);
  }
  void forget_unsynced() {
    uncertain_from_.reset();
    unsynced_bytes_ = 0;
  }

  const int64_t most_in_place_bytes_;
  std::optional<int64_t> uncertain_from_;  // what went past since the policy's last sync
  int64_t unsynced_bytes_ = 0;             // of it
  int64_t turn_ = 0;                       // when that began
  std::optional<int64_t> certain_end_;     // where a sync failed
};

Result<std::unique_ptr<WriteBehind>> WriteBehind::make(comm::Comm& comm, WriteBehindShape asked,
                                                       const layout::Geometry& geometry,
                                                       const std::optional<Bell::Address>& bell) {
  const size_t owners_bytes = PageOwners::bytes_for(comm.size());
  PoolShape shape = pool_shape(comm, asked, geometry);
  shape.at = size_t(align_up(int64_t(owners_bytes), kPageStep));
  auto segment = comm.shared_segment({.bytes = PagePool::bytes_for(shape),
                                      .zeroed_bytes = PagePool::zeroed_bytes_for(shape),
                                      .room = comm::Room::when_used});
  const Result<void> room =
      segment ? (*segment)->populate(0, owners_bytes) : tl::unexpected(segment.error());
  auto pool = room ? PagePool::make(*segment, shape) : tl::unexpected(room.error());
  std::unique_ptr<PageOwners> owners;
  if (pool) owners = std::make_unique<PageOwners>(*segment, 0, comm.size(), comm.rank(), bell);
  const Result<void> mine = pool ? Result<void>() : Result<void>(tl::unexpected(pool.error()));
  if (auto agreed = agree_or_abandon(comm, mine); !agreed) return tl::unexpected(agreed.error());
  owners->all_have_joined();
  std::unique_ptr<WriteBehind> made(new WriteBehind(*std::move(pool), std::move(owners),
                                                    writer_of_full(comm, asked), pages_ahead(comm),
                                                    shape.guests > 0 ? comm.rank() : kNoGuest));
  made->memory_left_ = asked.memory_left;
  if (comm.nodes() == 1) return made;
  made->stages_ = asked.stages;
  auto shipping = Shipping::make(comm, shipping_shape(comm, asked, geometry));
  if (shipping)
    made->shipping_ = *std::move(shipping);
  else
    made->why_not_shipped_ = shipping.error().message();
  return made;
}

WriteBehind::WriteBehind(std::shared_ptr<PagePool> pool, std::shared_ptr<PageOwners> owners,
                         FullPage full, int ahead, int guest)
    : pool_(std::move(pool)),
      owners_(std::move(owners)),
      full_(full),
      ahead_(ahead),
      guest_(guest) {}

std::unique_ptr<WriteBehind> WriteBehind::beside() {
  if (shipping_ != nullptr || !why_not_shipped_.empty() || gone_) return nullptr;
  pool_->note_several_handles();
  owners_->one_more();
  std::unique_ptr<WriteBehind> other(new WriteBehind(pool_, owners_, full_, ahead_, kNoGuest));
  other->memory_left_ = memory_left_;
  return other;
}

WriteBehind::~WriteBehind() { let_go(); }

void WriteBehind::let_go() {
  if (!gone_.exchange(true)) owners_->one_less();
}

WriteOutcome WriteBehind::write(const Target& target, const WriteRequest& request) {
  // Not less than a page: whole pages go past the pool.
  Filling filling(request, std::max(in_place_bytes(target.sync), pool_->page_bytes()));
  if (shipping_ != nullptr) shipping_->put_late();
  int64_t at = filling.own.begin;
  bool room = true;
  while (at < filling.own.end && room && !filling.failed) {
    const Off offset = filling.view.offset_of(at);
    const int64_t whole = write_whole_pages(target, filling, offset, at);
    at += whole;
    if (whole > 0 || filling.failed) continue;
    const int64_t page = offset / pool_->page_bytes();
    const StreamRange part = filling.view.clip({at, filling.own.end}, pool_->extent(page));
    if (part.empty()) {
      filling.failed = beyond_every_file("write behind");
      break;
    }
    if (!keeps_here(filling, page, part)) at += ship(target, filling, page, part);
    if (at == part.end) continue;
    room = fill(target, filling, page, {at, part.end});
    if (room) at = part.end;
    if (shipping_ != nullptr && shipping_->is_of_another_node(page)) kept_ = shipping_->settles();
  }
  if (sends_at_once()) shipping_->send_at_once();
  WriteOutcome outcome;
  outcome.prefix_bytes = filling.certain_end(at) - filling.own.begin;
  outcome.mine = std::move(filling.failed);
  if (outcome.mine) outcome.agreed = outcome.mine->error_class;
  const std::lock_guard lock(mutex_);
  if (!room) ++notes_.without_memory;
  notes_.accepted_bytes += at - filling.own.begin - filling.uncertain_bytes;
  notes_.written_bytes += filling.written_bytes;
  notes_.spent = notes_.spent + filling.spent;
  return outcome;
}

std::optional<Ticks> WriteBehind::add(const Target& target, const layout::Run& run,
                                      const std::byte* bytes, Ticks begin, Returns returns) {
  if (shipping_ != nullptr || !holds(reach_, run)) return {};
  const bool is_guest = guest_ != kNoGuest;
  PagePool::Place& place = *last_;
  if (!(is_guest ? pool_->hold(guest_, place.stay) : pool_->pin(place.stay))) return {};
  const int64_t newly = put_into(place, run, bytes);
  untold_ += newly;
  bool full = false;
  if (is_guest) {
    pool_->let_go(guest_, place.stay);
    full = is_to_be_told(run) && tell_dirty();
  } else {
    full = pool_->unpin(place.stay, std::exchange(untold_, 0));
  }
  const Ticks end = ticks();
  added_.bytes.add(run.bytes());
  added_.over.add(run.bytes() - newly);
  added_.pack.add(std::max<Ticks>(0, end - begin));
  if (!full) return end;
  send_full(target, place.stay, returns);
  return ticks();
}

// The count of a page's dirty bytes is in memory that all who fill it want. So it is told of a
// sixteenth at a time, and at the page's end, where who goes through the file leaves it.
bool WriteBehind::is_to_be_told(const layout::Run& run) const noexcept {
  const int64_t some = pool_->page_bytes() / 16;
  const Off end = run.offset + (run.count - 1) * run.stride + run.block;
  return untold_ >= some || end > last_->extent.end - some;
}

// Whether the page looks full. What has left meanwhile took its bytes along.
bool WriteBehind::tell_dirty() noexcept {
  const int64_t newly = std::exchange(untold_, 0);
  return newly > 0 && pool_->pin(last_->stay) && pool_->unpin(last_->stay, newly);
}

// How many of these bytes were not dirty before. REQUIRES a pin of a page that holds them.
int64_t WriteBehind::put_into(PagePool::Place& place, const layout::Run& run,
                              const std::byte* bytes) {
  layout::scatter(place.memory, place.extent.begin, run, bytes);
  return place.dirty.mark(run);
}

// liao-2007's baseline, IBM's data shipping.
bool WriteBehind::sends_at_once() const noexcept {
  return stages_ == 1 && shipping_ != nullptr && shipping_->progress() != Progress::calls;
}

// A whole page that a blocking write would put into the file itself: the thread does.
bool WriteBehind::keeps_here(const Filling& filling, int64_t page, StreamRange part) const {
  return shipping_ != nullptr && filling.returns == Returns::at_once &&
         part.size() == pool_->page_bytes() && shipping_->may_pass(page);
}

// What goes to its owner now must not enter the file before what this node has of the page, also
// where a collective call of another thread has gone by since that was kept.
void WriteBehind::let_kept_leave(const Target& target, int64_t page) {
  if (kept_ && shipping_->settled_since(*kept_)) kept_.reset();  // all of it is in the file
  if (!kept_ || shipping_->stays_here(page)) return;
  const std::optional<PagePool::Stay> stay = pool_->find(page);
  if (!stay) return;
  send_off(target, *stay);
  wait_until_left(target, *stay);
}

int64_t WriteBehind::ship(const Target& target, Filling& filling, int64_t page, StreamRange part) {
  if (shipping_ == nullptr) return 0;
  let_kept_leave(target, page);
  NodePages pages(*this, target);
  const Stopwatch watch(filling.spent.times.pack_s);
  return shipping_->take(page, filling, part, pages);
}

// false: no slot has memory.
bool WriteBehind::fill(const Target& target, Filling& filling, int64_t page, StreamRange part) {
  const std::optional<PagePool::Stay> stay = pin_last(target, page, filling.returns);
  if (!stay) return false;
  bool full = false;
  {
    const Stopwatch watch(filling.spent.times.pack_s);
    expect_stores(filling, *stay, part);
    filling.copy(pool_->memory(*stay), pool_->extent(page).begin, part);
    const int64_t newly = filling.mark(pool_->dirty(*stay), part);
    filling.written_bytes += part.size() - newly;  // over others that were to be written anyway
    full = pool_->unpin(*stay, newly + std::exchange(untold_, 0));
  }
  filling.spent.traffic.shared_bytes += part.size();
  if (full) send_full(target, *stay, filling.returns);
  return true;
}

void WriteBehind::expect_stores(const Filling& filling, const PagePool::Stay& stay,
                                StreamRange part) {
  if (pool_->is_mapped(stay)) {
    reach_ = pool_->extent(stay.page);
    return;
  }
  const Extent where = filling.view.extent_of(part);
  if (where.intersect(reach_) != where) reach_ = pool_->come_to(stay, where);
}

std::optional<PagePool::Stay> WriteBehind::pin_last(const Target& target, int64_t page,
                                                    Returns returns) {
  if (last_ && last_->stay.page == page && pool_->pin(last_->stay)) return last_->stay;
  if (last_ && tell_dirty()) send_full(target, last_->stay, returns);
  last_.reset();
  reach_ = {};
  let_other_nodes_follow(page, returns);
  const std::optional<PagePool::Stay> stay = pin(target, page, returns);
  if (!stay) return stay;
  last_.emplace(pool_->place(*stay));
  if (guest_ != kNoGuest) pool_->come_as_guest(guest_, *stay);
  return stay;
}

std::optional<PagePool::Stay> WriteBehind::pin(const Target& target, int64_t page,
                                               Returns returns) {
  for (;;) {
    // Who takes a new page is ahead of others, and they are spared the work.
    if (returns == Returns::soon && pool_->wants_writer(now_s()) && !pool_->find(page))
      write_offered(target);
    const uint32_t seen = pool_->departures();
    const auto [pinning, stay] = pool_->pin(page);
    switch (pinning) {
      case PagePool::Pinning::pinned:
        return stay;
      case PagePool::Pinning::leaving:
        wait_until_left(target, stay);
        break;
      case PagePool::Pinning::no_memory:
        if (others_complete_a_page(seen, returns)) break;
        if ((pool_->empty() || may_take_memory()) && pool_->add_slot(now_s())) break;
        if (!pool_->empty()) {
          make_room(target);
          break;
        }
        // Unless a page has left while memory was asked for, there is none.
        if (const auto [again, free] = pool_->pin(page); again == PagePool::Pinning::pinned)
          return free;
        return std::nullopt;
      case PagePool::Pinning::no_room:
        if (!pool_->usable()) return std::nullopt;
        if (!others_complete_a_page(seen, returns)) make_room(target);
    }
  }
}

// Files that are opened before any of them is written find all of the memory there that a limit
// leaves. A quarter of it is for a file's pages, by now.
bool WriteBehind::may_take_memory() const {
  if (memory_left_ == nullptr || pool_->used() < kLeastSlots) return true;
  const std::optional<int64_t> left = memory_left_(pool_->page_bytes());
  const int64_t mine = pool_->used() * pool_->page_bytes();
  return !left || mine + pool_->page_bytes() <= (*left + mine) / 4;
}

// What another node has sent, or this rank has kept here after all.
void WriteBehind::put(const Target& target, const layout::Run& run, const std::byte* bytes) {
  const std::optional<PagePool::Stay> stay =
      pin(target, run.offset / pool_->page_bytes(), Returns::soon);
  if (!stay) {
    put_at_once(target, run, bytes);
    return;
  }
  if (!pool_->is_mapped(*stay)) (void)pool_->come_to(*stay, hull_of(run));
  PagePool::Place place = pool_->place(*stay);
  const int64_t newly = put_into(place, run, bytes);
  const bool full = pool_->unpin(*stay, newly);
  {
    const std::lock_guard lock(mutex_);
    notes_.written_bytes += run.bytes() - newly;
  }
  if (full) send_full(target, *stay, Returns::soon);
}

// Where the machine has no memory for any page.
void WriteBehind::put_at_once(const Target& target, const layout::Run& run,
                              const std::byte* bytes) {
  Spent spent;
  int64_t lost = 0;
  const int64_t failures = settle(target);
  for (int64_t i = 0; i < run.count; ++i) {
    const Off at = run.offset + i * run.stride;
    const Extent where{at, at + run.block};
    const auto fault =
        write_extent(target, where, {bytes + i * run.block, size_t(run.block)}, spent);
    if (!fault) continue;
    pool_->losses().add(where, where.size(), fault->error);
    lost += run.block;
  }
  follow_or_lose(target, hull_of(run), run.bytes() - lost, failures, spent);
  const std::lock_guard lock(mutex_);
  ++notes_.without_memory;
  notes_.written_bytes += run.bytes() - lost;
  lost_here_ += lost;
  notes_.spent = notes_.spent + spent;
}

// The page that nobody has touched for the longest time leaves; where all are on their way, the
// first of them makes room.
void WriteBehind::make_room(const Target& target) {
  const uint32_t seen = pool_->departures();
  if (const auto oldest = pool_->least_recently_used())
    send_off(target, *oldest);
  else if (pool_->empty())
    return;
  if (!pool_->wait_for_departure(seen)) relieve(target);
}

// Whole pages that lie in one piece in the file and in memory: how many bytes of them were written,
// 0 where the stream goes on otherwise. Nobody else has bytes in them, so that they have one writer
// too, unless the program writes a byte twice. A write that returns at once does not wait for them.
int64_t WriteBehind::write_whole_pages(const Target& target, Filling& filling, Off offset,
                                       int64_t at) {
  const int64_t page = pool_->page_bytes();
  if (filling.returns == Returns::at_once) return 0;
  if (offset % page != 0 || filling.own.end - at < page || !filling.data.contiguous()) return 0;
  const int64_t in_a_piece = std::min(filling.contiguous_at(at), kLastOff - offset);
  const int64_t passable = pages_that_may_pass(offset / page, in_a_piece / page);
  const int64_t whole = page * pages_elsewhere(offset / page, passable);
  if (whole == 0) return 0;
  const Extent where{offset, offset + whole};
  Spent& spent = filling.spent;
  const int64_t failures = settle(target);
  const auto fault = write_extent(target, where, filling.data.in_place(at, whole), spent);
  const int64_t written =
      fault ? std::clamp<int64_t>(fault->first_missing - offset, 0, whole) : whole;
  if (fault) filling.failed = fault->error;
  const Followed followed = follow(target, {offset, offset + written}, written, failures, spent);
  const SinceSync::Bytes taken = followed.synced ? SinceSync::Bytes() : take_since_sync(target);
  const int64_t told =
      filling.went_past({at, at + written}, followed.synced, followed.noted, taken.turn);
  if (!followed.synced) lose(taken, told, followed.synced.error());
  return written;
}

// How many of these pages, from the first on, this rank may write itself.
int64_t WriteBehind::pages_that_may_pass(int64_t first, int64_t count) const {
  if (shipping_ == nullptr) return count;
  for (int64_t i = 0; i < count; ++i)
    if (!shipping_->may_pass(first + i)) return i;
  return count;
}

// How many of these pages, from the first on, are not in the pool.
int64_t WriteBehind::pages_elsewhere(int64_t first, int64_t count) const {
  if (pool_->empty()) return count;
  for (int64_t i = 0; i < count; ++i)
    if (pool_->find(first + i)) return i;
  return count;
}

}  // namespace penstock::exec
