// Loads that this rank puts into its owners' memory itself, and takes out of its own
// (put_loads.hpp, docs/decisions/0035).
#include <algorithm>

#include "base/backoff.hpp"
#include "base/clock.hpp"
#include "exec/abandon.hpp"
#include "exec/shipping.hpp"

namespace penstock::exec {

// --- As a sender ---

// In a collective call everybody waits until nothing is put any more.
void Shipping::put_out(int owner, PutLoads::Which which) {
  if (in_settle_) return;
  or_abandon("write behind", [&] {
    traffic_ = traffic_ + put_->put(owner, buffers_, which);
    put_->collect(buffers_);
  });
}

// Owners that take nothing out now must not stop this rank: it waits only where it writes again
// what it has put there.
bool Shipping::make_room_by_rma(int owner, Pages& pages) {
  for (const int each : buffers_.owners()) put_out(each, PutLoads::Which::full);
  if (progress_locked(pages)) return true;
  for (const int each : {buffers_.fullest().value_or(owner), owner})
    if (!put_->overlaps(each, buffers_.hull_of(each))) {
      keep_here(each, pages);
      return true;
    }
  put_->ask(owner);
  return false;
}

// The rest of a write must not enter the file before what the owner was given of the same bytes.
bool Shipping::was_put(int owner, Extent where) const {
  return put_ != nullptr && !ended_ && put_->overlaps(owner, where);
}

// Until what was put to them is in the file. A collective call of another thread sees to that, too,
// and then it is in the file when that call is over.
void Shipping::await(const std::vector<int>& owners, Pages& pages,
                     std::unique_lock<std::mutex>& lock) {
  const auto has_any = [this](int owner) { return put_->has(owner); };
  for (Backoff backoff; in_settle_ || (!ended_ && std::ranges::any_of(owners, has_any));) {
    // Again and again: what another thread has put since the answer is a question of its own.
    for (const int owner : owners) put_->ask(owner);
    if (progress_locked(pages)) backoff.reset();
    lock.unlock();
    backoff.pause();
    lock.lock();
  }
}

// All that is here now. What another thread writes meanwhile is put to its owner in its own order.
void Shipping::keep_behind_put(Pages& pages, std::unique_lock<std::mutex>& lock) {
  const std::vector<int> given = put_->owners();
  for (const int owner : buffers_.owners())
    if (!put_->has(owner)) keep_here(owner, pages);
  await(given, pages, lock);
  for (const int owner : given)
    if (buffers_.has(owner)) keep_here(owner, pages);
}

// Whether their owners have taken these out only MPI could say, and this may be the I/O thread. So
// rather twice than late; and at once, or bytes that are put later could be overtaken. What the
// file has already of those that came later is under them then.
bool Shipping::write_older_put(double then_s, Pages& pages) {
  const auto late = put_->older(then_s);
  for (const PutLoads::Older& one : late) {
    put(one.parcel, pages);
    buffers_.forget_copies(one.owner, then_s);
  }
  return !late.empty();
}

// What may come after bytes that the owner was put, and still has: it goes the same way, so that it
// is the last, and is in the file as well. The I/O thread makes no call to MPI.
void Shipping::write_behind_put(int owner, Pages& pages) {
  or_abandon("write behind", [&] {
    late_.insert(owner);
    any_late_ = true;
    buffers_.copy_news(owner, [&](std::span<const std::byte> parcel) { put(parcel, pages); });
  });
}

// Behind what they were put, where that was taken out. Small writes must not do nothing but ask.
void Shipping::put_late() {
  using Which = PutLoads::Which;
  constexpr double kLeastPause_s = 1e-3, kShare = 0.1;
  if (!any_late_) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  const double begin_s = now_s();
  if (!lock || in_settle_ || ended_ || begin_s < no_late_before_s_) return;
  or_abandon("write behind", [&] {
    for (const int owner : late_) traffic_ = traffic_ + put_->put(owner, buffers_, Which::any);
    put_->collect(buffers_);
  });
  std::erase_if(late_, [&](int owner) { return !buffers_.has(owner); });
  any_late_ = !late_.empty();
  const double end_s = now_s();
  no_late_before_s_ = end_s + std::max(kLeastPause_s, (end_s - begin_s) / kShare);
}

// --- As an owner ---

bool Shipping::progress_put(Pages& pages) {
  if (!in_settle_) put_->ask_owners();
  const bool collected = put_->collect(buffers_);
  return take_out(pages) || collected;
}

// Of this rank's own memory, with no call to MPI.
bool Shipping::take_out(Pages& pages) {
  bool any = false;
  or_abandon("write behind", [&] {
    for (; auto parcel = put_->receive(); any = true) {
      take_in(std::move(*parcel), pages);
      put_->release();
    }
  });
  return any;
}

}  // namespace penstock::exec
