#include "exec/shipping.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/backoff.hpp"
#include "base/clock.hpp"
#include "base/seeded_fault.hpp"
#include "comm/agreement.hpp"
#include "exec/abandon.hpp"

namespace penstock::exec {
namespace {

Extent hull_of(Shipping::Stream& stream, StreamRange range) {
  Extent hull;
  while (!range.empty()) {
    const layout::Run run = stream.run_at(range);
    hull = exec::hull_of(hull, exec::hull_of(run));
    range.begin += run.bytes();
  }
  return hull;
}

constexpr double kLongestCollecting_s = 1;
constexpr int kMostAtOnce = 64;  // parcels, 2 MiB of loads

ParcelKind kind_of(const comm::Parcel& parcel) { return ParcelKind(parcel.bytes.front()); }

}  // namespace

// What this rank has sent was taken: loads before a collective call ended, questions before they
// were answered, and answers before who had asked came to close. Only MPI may not have said so yet,
// and it says so without anybody's help. Where a rank has given up, its answers may never be taken.
void Shipping::collect_last() {
  const std::lock_guard lock(mutex_);
  if (parcels_ == nullptr) return;
  const double end_s = now_s() + kLongestCollecting_s;
  for (Backoff backoff; !parcels_->are_delivered(parcels_->sent()); backoff.pause()) {
    if (ended_ || !status() || now_s() > end_s) return;
    collect_delivered();
  }
}

// The others are asked first: what one of them has given up nobody can free.
void Shipping::close() {
  collect_last();
  if (put_ == nullptr) return;
  int64_t failed[1] = {0};
  {
    const std::lock_guard lock(mutex_);
    failed[0] = ended_ || !status() ? 1 : 0;
  }
  or_abandon(comm_.all_max(failed));
  if (failed[0] == 0) put_->free();
}

// --- Taking ---

int64_t Shipping::take(int64_t page, Stream& stream, StreamRange part, Pages& pages) {
  const int owner = owner_of(page);
  if (!is_foreign(owner)) return 0;
  std::unique_lock lock(mutex_);
  int64_t at = part.begin;
  while (at < part.end) {
    Load* const load = load_for(owner, pages, lock);
    if (load == nullptr) {
      if (!was_put(owner, hull_of(stream, {at, part.end}))) break;
      await({owner}, pages, lock);
      continue;
    }
    const layout::Run run = stream.run_at({at, at + std::min(part.end - at, load->room())});
    stream.pack(load->append(run), {at, at + run.bytes()});
    at += run.bytes();
    if (load->room() > 0) continue;
    if (progress_ == Progress::thread) send(owner);
    if (progress_ == Progress::rma) put_out(owner, PutLoads::Which::full);
  }
  return at - part.begin;
}

// nullptr: the owner's bytes go to this node's pages.
Load* Shipping::load_for(int owner, Pages& pages, std::unique_lock<std::mutex>& lock) {
  for (Backoff backoff;;) {
    if (ended_ || here_.contains(owner)) return nullptr;
    // What is on its way in a collective call must not be overtaken by this node's pages, and to
    // wait for that call might be to wait for oneself: only here the limit is exceeded.
    const bool exceed = progress_ != Progress::thread && in_settle_;
    using enum SubBuffers::Limit;
    if (Load* const load = buffers_.filling(owner, exceed ? exceeded : kept)) return load;
    if (make_room(owner, pages)) continue;
    lock.unlock();  // the I/O thread may find what has come
    backoff.pause();
    lock.lock();
  }
}

// Whether there may be some now.
bool Shipping::make_room(int owner, Pages& pages) {
  if (progress_ == Progress::rma) return make_room_by_rma(owner, pages);
  const std::optional<int> fullest = buffers_.fullest();
  if (progress_ == Progress::calls) {
    keep_here(*fullest, pages);  // all loads are here
    return true;
  }
  if (fullest) send(*fullest);
  return progress_locked(pages);
}

bool Shipping::may_pass(int64_t page) const {
  const int owner = owner_of(page);
  if (!is_foreign(owner)) return true;
  const std::lock_guard lock(mutex_);
  if (ended_) return true;
  if (put_ != nullptr && put_->has(owner)) return false;
  if (here_.contains(owner)) return true;
  if (shape_.sharing != layout::Sharing::any) return false;
  return !buffers_.has(owner) && !touched_.contains(owner) && !settling_.contains(owner) &&
         !asked_.contains(owner);
}

bool Shipping::stays_here(int64_t page) const {
  const int owner = owner_of(page);
  if (!is_foreign(owner)) return true;
  const std::lock_guard lock(mutex_);
  return ended_ || here_.contains(owner);
}

int64_t Shipping::settles() const {
  const std::lock_guard lock(mutex_);
  return settles_;
}

bool Shipping::settled_since(int64_t settles) const {
  const std::lock_guard lock(mutex_);
  return settles_over_ > settles;
}

// --- Moving ---

// Loads bring bytes of calls that have returned: where one cannot be moved for lack of memory, they
// would be nowhere.
void Shipping::send(int owner) {
  or_abandon("write behind", [&] {
    touched_.insert(owner);
    for (Load& load : buffers_.take(owner)) send_load(owner, std::move(load));
  });
}

void Shipping::send_load(int owner, Load load) {
  std::vector<std::byte> parcel = std::move(load).take();
  if (seeded_fault("load_lost")) {
    buffers_.give_back(std::move(parcel));
    return;
  }
  ++traffic_.messages;
  traffic_.message_bytes += int64_t(parcel.size());
  parcels_->send(owner, std::move(parcel));
}

void Shipping::send_at_once() {
  const std::lock_guard lock(mutex_);
  if (in_settle_ || ended_) return;
  for (const int owner : buffers_.owners())
    if (progress_ == Progress::thread)
      send(owner);
    else
      put_out(owner, PutLoads::Which::any);
}

void Shipping::send_word(int to, ParcelKind kind) { parcels_->send(to, {std::byte(kind)}); }

// To the pages of this node; so does what comes later for this owner.
void Shipping::keep_here(int owner, Pages& pages) {
  or_abandon("write behind", [&] {
    here_.insert(owner);
    for (Load& load : buffers_.take(owner)) {
      put(load.parcel(), pages);
      buffers_.give_back(std::move(load).take());
    }
  });
}

void Shipping::keep_all_here(Pages& pages) {
  for (const int owner : buffers_.owners()) keep_here(owner, pages);
}

void Shipping::put(std::span<const std::byte> parcel, Pages& pages) {
  LoadReader reader(parcel);
  while (const auto record = reader.next()) {
    if (pages.holds(record->run))
      pages.put(record->run, record->bytes.data());
    else
      note_failure({ErrorClass::internal, 0, "write behind", "a load goes past its page"});
  }
  if (!reader.ok())
    note_failure({ErrorClass::communication, 0, "write behind", "a load cannot be understood"});
}

void Shipping::note_failure(const Error& error) {
  if (!failure_ || failure_->error_class < error.error_class) failure_ = error;
}

Result<void> Shipping::status() const {
  if (put_ != nullptr && !put_->status()) return put_->status();
  return parcels_ != nullptr ? parcels_->status() : Result<void>();
}

// Whether anything has moved.
bool Shipping::progress_locked(Pages& pages) {
  bool moved = put_ != nullptr && progress_put(pages);
  if (parcels_ != nullptr) moved = progress_parcels(pages) || moved;
  if (const Result<void> now = status(); !now && !ended_) {
    note_failure(now.error());
    give_up(pages);
  }
  return moved;
}

bool Shipping::collect_delivered() {
  bool any = false;
  while (auto parcel = parcels_->delivered()) {
    any = true;
    if (kind_of(*parcel) == ParcelKind::load) buffers_.give_back(std::move(parcel->bytes));
  }
  return any;
}

// Not all that comes, while others send on and on: the caller has other things to look at.
bool Shipping::progress_parcels(Pages& pages) {
  bool moved = collect_delivered();
  for (int i = 0; i < kMostAtOnce && receive_one(pages); ++i) moved = true;
  return moved;
}

// What another rank was told is on its way: without memory for it, it would be nowhere.
bool Shipping::receive_one(Pages& pages) {
  return or_abandon("write behind", [&] {
    auto parcel = parcels_->receive();
    if (parcel) take_in(std::move(*parcel), pages);
    return parcel.has_value();
  });
}

void Shipping::take_in(comm::Parcel parcel, Pages& pages) {
  switch (kind_of(parcel)) {
    case ParcelKind::load:
      put(parcel.bytes, pages);
      return;
    case ParcelKind::flush:
      pages.flush();
      // By rma it is answered when it is released.
      if (progress_ == Progress::thread) answer(parcel.peer, pages);
      return;
    case ParcelKind::done:
      take_answer(parcel);
      if (--asked_[parcel.peer] == 0) asked_.erase(parcel.peer);
      return;
  }
}

// Nobody can be relied on any more. What may not have been received is written here: rather twice
// than never.
void Shipping::give_up(Pages& pages) {
  ended_ = true;
  or_abandon("write behind", [&] {
    std::vector<comm::Parcel> back;
    if (parcels_ != nullptr) back = parcels_->take_back();
    if (put_ != nullptr) std::ranges::move(put_->take_back(), std::back_inserter(back));
    for (const comm::Parcel& parcel : back)
      if (kind_of(parcel) == ParcelKind::load) put(parcel.bytes, pages);
  });
  if (put_ != nullptr) put_->forget();
  keep_all_here(pages);
  asked_.clear();
}

bool Shipping::step(Pages& pages) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || ended_) return false;
  return put_ != nullptr ? take_out(pages) : progress_locked(pages);
}

void Shipping::end(Pages& pages) {
  const std::lock_guard lock(mutex_);
  if (!ended_) give_up(pages);
  touched_.clear();  // a file that is closed in MPI_Finalize is not waited for
}

void Shipping::send_older(double seconds, Pages& pages) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || in_settle_ || ended_)
    return;  // this node's pages must not overtake what is on its way
  const double then_s = now_s() - seconds;
  bool is_twice = put_ != nullptr && write_older_put(then_s, pages);
  for (const int owner : buffers_.owners_since(then_s))
    if (progress_ == Progress::thread) {
      send(owner);
    } else if (was_put(owner, buffers_.hull_of(owner))) {
      write_behind_put(owner, pages);
      is_twice = true;
    } else {
      keep_here(owner, pages);
    }
  if (is_twice) pages.flush();
}

bool Shipping::empty() const {
  const std::lock_guard lock(mutex_);
  return buffers_.loads() == 0;
}

// --- This rank alone ---

void Shipping::flush(Pages& pages) {
  std::unique_lock lock(mutex_);
  until_settled(lock);
  if (progress_ == Progress::thread && !ended_)
    ask_owners();
  else if (put_ != nullptr)
    keep_behind_put(pages, lock);
  else
    keep_all_here(pages);
  lock.unlock();
  pages.flush();
  if (progress_ != Progress::thread) return;
  lock.lock();
  for (Backoff backoff; !asked_.empty() && !ended_;) {
    if (progress_locked(pages)) backoff.reset();
    lock.unlock();
    backoff.pause();
    lock.lock();
  }
  const bool kept_after_all = ended_;
  lock.unlock();
  if (kept_after_all) pages.flush();
}

// What a collective call of another thread has taken along is in the file when that call is over;
// and that does not wait for this one, since all ranks are in it.
void Shipping::until_settled(std::unique_lock<std::mutex>& lock) const {
  for (Backoff backoff; in_settle_;) {
    lock.unlock();
    backoff.pause();
    lock.lock();
  }
}

void Shipping::ask_owners() {
  for (const int owner : buffers_.owners()) send(owner);
  for (const int owner : touched_) {
    ++asked_[owner];
    send_word(owner, ParcelKind::flush);
  }
  touched_.clear();
}

// --- All ranks ---

void Shipping::settle(Pages& pages) {
  const Facts facts = meet(pages);
  move_all(pages, facts.any);
  if (facts.any || facts.may_lose) share(pages);
}

bool Shipping::has_any() const {
  const std::lock_guard lock(mutex_);
  const bool put = put_ != nullptr && !ended_ && put_->used();
  return put || !buffers_.empty() || !touched_.empty() || !asked_.empty();
}

Shipping::Facts Shipping::meet(const Pages& pages) {
  comm::Agreement agreement;
  const auto any = agreement.some(has_any());
  const auto may_lose = agreement.some(!pages.empty() || has_news(pages));
  or_abandon(agreement.reach(comm_));
  return {agreement[any], agreement[may_lose]};
}

void Shipping::move_all(Pages& pages, bool any) {
  {
    const std::lock_guard lock(mutex_);
    ++settles_;
    if (!any) here_.clear();  // what these had is flushed below, before another load is sent
    in_settle_ = any || put_ != nullptr;  // by rma it would be sent at once
  }
  if (any && have_parcels())
    exchange(pages);
  else if (any)
    keep_for_good(pages);
  pages.flush();
  if (any) or_abandon(comm_.barrier());  // all owners have flushed
  const std::lock_guard lock(mutex_);
  in_settle_ = false;
  settles_over_ = settles_;
  if (!any) return;
  settling_.clear();
  late_.clear();
  any_late_ = false;
  if (put_ != nullptr) put_->forget();
}

// Collective. Files that are written by collective calls alone never need them, and a communicator
// of its own costs as much as opening a file.
bool Shipping::have_parcels() {
  if (parcels_ != nullptr) return true;
  auto made = on_all_or_abandon(comm_, comm_.parcels());
  const std::lock_guard lock(mutex_);
  if (!made) why_none_ = made.error().message();
  if (made) parcels_ = *std::move(made);
  return parcels_ != nullptr;
}

// All ranks do alike.
void Shipping::keep_for_good(Pages& pages) {
  if (put_ != nullptr) bring_home(pages);
  const std::lock_guard lock(mutex_);
  if (!ended_) give_up(pages);
}

// Collective. What was put is in the file before this node's pages take in what came later.
void Shipping::bring_home(Pages& pages) {
  for (Backoff backoff; some_is_put(pages);) backoff.pause();
  pages.flush();
  or_abandon(comm_.barrier());
}

// Collective. Takes out what has come, too.
bool Shipping::some_is_put(Pages& pages) {
  int64_t some[] = {0};
  {
    const std::lock_guard lock(mutex_);
    progress_locked(pages);
    some[0] = ended_ || put_->quiet() ? 0 : 1;
  }
  or_abandon(comm_.all_max(some));
  return some[0] != 0;
}

void Shipping::send_all() {
  for (const int owner : buffers_.owners()) send(owner);
  here_.clear();  // what these had is flushed before another load is sent
  settling_ = std::exchange(touched_, {});
}

// What was put goes first: owners have taken it out before its sender sends anything else. What
// another thread sends meanwhile is not waited for: it belongs to the next call, so that a thread
// which writes on and on holds up nobody.
void Shipping::exchange(Pages& pages) {
  std::unique_lock lock(mutex_);
  std::optional<int64_t> sent;  // how many were, with all that was here
  bool arrived = false;
  moved_s_ = now_s();
  for (Backoff backoff;;) {
    if (progress_locked(pages)) {
      moved_s_ = now_s();
      backoff.reset();
    }
    if (!sent && (put_ == nullptr || put_->quiet())) {
      send_all();
      sent = parcels_->sent();
    }
    if (sent && !arrived && parcels_->are_delivered(*sent)) {
      parcels_->arrive();
      arrived = true;
    }
    // Others wait for what this rank can no longer send or receive.
    if (const Result<void> now = status(); !now) abandon(now.error());
    if (ended_) abandon(failure_.value_or(Error{ErrorClass::communication, 0, "write behind", ""}));
    if (arrived && parcels_->all_have_arrived()) break;
    lock.unlock();
    backoff.pause();
    lock.lock();
  }
  moved_s_ = -1;
  if (put_ != nullptr) put_->reopen();
}

bool Shipping::moving_together(double seconds) const noexcept {
  const double moved_s = moved_s_;
  return moved_s >= 0 && now_s() < moved_s + seconds;
}

Traffic Shipping::traffic() const {
  const std::lock_guard lock(mutex_);
  return traffic_;
}

}  // namespace penstock::exec
