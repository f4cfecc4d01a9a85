// Pages leave for the file: full, wanted, old, or at a flush; each by its owner, where that is to
// be heard.
#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <exception>
#include <limits>
#include <utility>

#include "base/clock.hpp"
#include "base/seeded_fault.hpp"
#include "exec/stager.hpp"
#include "exec/write_behind.hpp"
#include "exec/write_behind_pages.hpp"

namespace penstock::exec {
namespace {

constexpr double kLeastPatience_s = 1;
constexpr size_t kExtentsAtOnce = 512;

}  // namespace

// A page on its way into the file.
struct WriteBehind::Leaving {
  io::FileBytes bytes;
  Extent hull{};  // of what is in the file
  int64_t written = 0, lost = 0;
  Spent spent = {};

  void add(Extent e) {
    hull = {written == 0 ? e.begin : hull.begin, e.end};
    written += e.size();
  }
};

// In file order.
template <class Wanted>
std::vector<PagePool::Stay> WriteBehind::stays(Wanted&& wanted) const {
  std::vector<PagePool::Stay> found;
  for (int slot = 0; slot < pool_->used(); ++slot)
    if (const auto seen = pool_->look(slot); seen && wanted(*seen)) found.push_back(seen->stay);
  std::ranges::sort(found, {}, &PagePool::Stay::page);
  return found;
}

void WriteBehind::flush(const Target& target) {
  if (shipping_ == nullptr) {
    flush_pages(target);
    return;
  }
  NodePages pages(*this, target);
  shipping_->flush(pages);
}

void WriteBehind::flush_together(const Target& target) {
  if (shipping_ == nullptr) {
    flush_pages(target);
    return;
  }
  NodePages pages(*this, target);
  shipping_->settle(pages);
}

bool WriteBehind::step(const Target& target) {
  if (shipping_ == nullptr) return false;
  NodePages pages(*this, target);
  return shipping_->step(pages);
}

void WriteBehind::end_alone(const Target& target) {
  {
    const std::lock_guard lock(mutex_);
    ended_alone_ = true;
  }
  if (shipping_ == nullptr) return;
  NodePages pages(*this, target);
  shipping_->end(pages);
}

// Those of others first: their owners write while this rank writes its own.
void WriteBehind::flush_pages(const Target& target) {
  if (pool_->empty() || gone_) return;
  const auto all = stays([](const PagePool::Seen&) { return true; });
  for (const PagePool::Stay& stay : all)
    if (!is_mine(stay.page)) send_off(target, stay);
  for (const PagePool::Stay& stay : all)
    if (is_mine(stay.page)) send_off(target, stay);
  for (const PagePool::Stay& stay : all) wait_until_left(target, stay);
}

std::optional<PagePool::Stay> WriteBehind::last_before(int64_t page) const {
  std::optional<PagePool::Stay> last;
  for (int slot = 0; slot < pool_->used(); ++slot)
    if (const auto seen = pool_->look(slot); seen && seen->stay.page < page)
      if (!last || seen->stay.page > last->page) last = seen->stay;
  return last;
}

// What has left while this looks, is in the file by then. A page that somebody is only about to
// fill has no byte, and those before it have.
Off WriteBehind::end() const {
  auto last = last_before(std::numeric_limits<int64_t>::max());
  for (; last; last = last_before(last->page)) {
    const Off end = pool_->dirty(*last).end();
    const auto still = pool_->look(last->slot);
    const bool stays = still && still->stay == *last;
    if (stays && end > pool_->extent(last->page).begin) return end;
  }
  return 0;
}

void WriteBehind::serve_asked(const Target& target) {
  if (!owners_->was_asked()) return;
  const auto wanted = [&](const PagePool::Seen& s) { return s.wanted && is_mine(s.stay.page); };
  for (const PagePool::Stay& stay : stays(wanted)) leave(target, stay);
}

void WriteBehind::serve_older(const Target& target, double seconds) {
  if (shipping_ != nullptr) {
    seconds /= 2;  // half here, half in the owner's page
    NodePages pages(*this, target);
    shipping_->send_older(seconds, pages);
  }
  while (pool_->wants_writer(now_s())) write_offered(target);
  if (pool_->empty() || are_being_filled(seconds)) return;
  const double then_s = now_s() - seconds;
  for (const PagePool::Stay& stay :
       stays([&](const PagePool::Seen& s) { return s.came_s < then_s || s.wanted; }))
    if (is_mine(stay.page))
      leave(target, stay);
    else if (!owners_->answers(owners_->owner_of(stay.page)))
      pool_->want(stay);
  relieve(target);
}

// All ranks have come to a flush, and none is old before what others still send has come too.
bool WriteBehind::are_being_filled(double seconds) const {
  return shipping_ != nullptr && shipping_->moving_together(std::max(seconds, kLeastPatience_s));
}

// Somebody waits for its room or its end: who waits for a page of its own, writes it.
void WriteBehind::send_off(const Target& target, const PagePool::Stay& stay) {
  if (is_mine(stay.page))
    leave(target, stay);
  else
    ask_for(target, stay);
}

// Where ranks write them themselves, who fills a page is the last that comes to it: it would fall
// behind further and further, until pages leave in parts. So others get them, while they can.
void WriteBehind::send_full(const Target& target, const PagePool::Stay& stay, Returns returns) {
  if (full_ == FullPage::by_owner || returns == Returns::at_once)
    ask_for(target, stay);
  else if (owners_->count() == 1 || !pool_->offer(stay))
    leave(target, stay);
}

// One full page, if there is any.
void WriteBehind::write_offered(const Target& target) {
  while (const auto full = pool_->take_offer())
    if (pool_->close(*full, owners_->mine())) return write_and_release(target, *full);
}

// Its owner's thread is told; where nobody hears, the caller writes it.
void WriteBehind::ask_for(const Target& target, const PagePool::Stay& stay) {
  if (seeded_fault("page_of_another")) return leave(target, stay);
  if (!pool_->want(stay) || owners_->ask(owners_->owner_of(stay.page))) return;
  if (!is_mine(stay.page)) note_taken_over();
  leave(target, stay);
}

void WriteBehind::wait_until_left(const Target& target, const PagePool::Stay& stay) {
  while (!pool_->wait_until_left(stay)) relieve(target);
}

// Pages that wait for somebody who will never write them; and this rank's own, since it may be its
// thread that waits here for another's, which waits for these: of this file, or of another.
void WriteBehind::relieve(const Target& target) {
  serve_asked(target);
  if (target.thread != nullptr) target.thread->answer_calls();
  for (int slot = 0; slot < pool_->used(); ++slot) {  // what was taken leaves before anything fails
    const auto seen = pool_->look(slot);
    if (!seen || !take(*seen)) continue;
    note_taken_over();
    write_and_release(target, seen->stay);
  }
}

void WriteBehind::note_taken_over() {
  const std::lock_guard lock(mutex_);
  ++notes_.taken_over;
}

// true: it did, and is this rank's to write now.
bool WriteBehind::take(const PagePool::Seen& seen) {
  const int me = owners_->mine();
  if (seen.leaving)
    return owners_->is_gone(seen.writer) && pool_->take_over(seen.stay, seen.writer, me);
  return seen.wanted && !owners_->answers(owners_->owner_of(seen.stay.page)) &&
         pool_->close(seen.stay, me);
}

void WriteBehind::leave(const Target& target, const PagePool::Stay& stay) {
  if (pool_->close(stay, owners_->mine())) write_and_release(target, stay);
}

// Ranks wait for a page that is leaving, so it leaves though there was no memory for what it takes.
void WriteBehind::write_and_release(const Target& target, const PagePool::Stay& stay) {
  try {
    write_page(target, stay);
  } catch (const std::exception&) {
    lose_page(stay);
  }
  pool_->release(stay, owners_->mine());
}

// Nobody knows which of its bytes are in the file.
void WriteBehind::lose_page(const PagePool::Stay& stay) {
  Leaving page;
  pool_->dirty(stay).for_each_extent([&](Extent e) { page.add(e); });
  pool_->losses().add(page.hull, page.written, {ErrorClass::no_memory, ENOMEM, "write", {}});
  const std::lock_guard lock(mutex_);
  lost_here_ += page.written;
}

void WriteBehind::write_page(const Target& target, const PagePool::Stay& stay) {
  if (seeded_fault("page_forgotten")) return;
  const PagePool::Turn turn(*pool_, now_s());
  const Extent where = pool_->extent(stay.page);
  const int64_t failures = settle(target);
  Leaving page{{where, {pool_->memory(stay), size_t(where.size())}}};
  std::array<Extent, kExtentsAtOnce> some;
  size_t n = 0;
  pool_->dirty(stay).for_each_extent([&](Extent e) {
    some[n++] = e;
    if (n == some.size()) write_dirty(target, page, {some.data(), std::exchange(n, 0)});
  });
  write_dirty(target, page, {some.data(), n});
  follow_or_lose(target, page.hull, page.written, failures, page.spent);
  const std::lock_guard lock(mutex_);
  notes_.written_bytes += page.written;
  lost_here_ += page.lost;
  notes_.spent = notes_.spent + page.spent;
}

// After a fault those behind it are tried as well.
void WriteBehind::write_dirty(const Target& target, Leaving& page,
                              std::span<const Extent> extents) {
  page.spent.traffic.writes += int64_t(extents.size());
  const Stopwatch watch(page.spent.times.write_s);
  while (!extents.empty()) {
    const auto fault = target.file.write_extents(page.bytes, extents);
    const auto is_whole = [&](Extent e) { return !fault || e.end <= fault->first_missing; };
    const auto broken_at = std::ranges::find_if_not(extents, is_whole);
    const auto whole = size_t(broken_at - extents.begin());
    for (const Extent e : extents.first(whole)) page.add(e);
    if (!fault) return;
    assert(whole < extents.size());  // a fault names a byte of what was submitted
    const Extent broken = extents[whole];
    const Off end = std::clamp(fault->first_missing, broken.begin, broken.end);
    const Extent missing{end, broken.end};
    page.add({broken.begin, end});
    page.lost += missing.size();
    pool_->losses().add(missing, missing.size(), fault->error);
    extents = extents.subspan(whole + 1);
  }
}

std::optional<io::Fault> WriteBehind::write_extent(const Target& target, Extent where,
                                                   std::span<const std::byte> bytes, Spent& spent) {
  const Stopwatch watch(spent.times.write_s);
  ++spent.traffic.writes;
  return target.file.write(bytes, where.begin);
}

// The sync policy is told. When the sync fails that it asks for, these bytes are not certain to be
// in the file, nor what was written since the last one. true: they are on the device.
// `failures`: what settle() said before they were written; what has failed meanwhile may have lost
// them, too.
WriteBehind::Followed WriteBehind::follow(const Target& target, Extent where, int64_t bytes,
                                          int64_t failures, Spent& spent) {
  if (target.sync == nullptr || bytes == 0) return {false, 0};
  const int64_t noted = since_sync_.wrote(where, bytes, target.sync->marks().begun);
  const Stopwatch watch(spent.times.sync_s);
  const int64_t writes = since_sync_.writes();
  Result<bool> synced = target.sync->wrote(where, bytes);
  if (synced && *synced) {
    ++spent.traffic.syncs;
    since_sync_.synced(writes, target.sync->marks());
  }
  if (const Result<void> why = target.sync->first_failure();
      synced && !why && target.sync->marks().failures != failures)
    lose(take_since_sync(target), 0, why.error());
  return {std::move(synced), noted};
}

void WriteBehind::follow_or_lose(const Target& target, Extent where, int64_t bytes,
                                 int64_t failures, Spent& spent) {
  if (const auto synced = follow(target, where, bytes, failures, spent).synced; !synced)
    lose(take_since_sync(target), 0, synced.error());
}

int64_t WriteBehind::settle(const Target& target) {
  if (target.sync == nullptr) return 0;
  const io::SyncMarks marks = target.sync->marks();
  const SinceSync::Bytes lost = since_sync_.settle(marks);
  if (const Result<void> why = target.sync->first_failure(); !why) lose(lost, 0, why.error());
  return marks.failures;
}

SinceSync::Bytes WriteBehind::take_since_sync(const Target& target) {
  return since_sync_.take(target.sync->marks());
}

// A sync of the policy has failed. `told`: so much of it the call tells that is under way.
void WriteBehind::lose(const SinceSync::Bytes& lost, int64_t told, const Error& why) {
  if (lost.count <= told) return;
  pool_->losses().add(lost.hull, lost.count - told, why);
  const std::lock_guard lock(mutex_);
  notes_.written_bytes -= lost.count - told;
  lost_here_ += lost.count - told;
}

}  // namespace penstock::exec
