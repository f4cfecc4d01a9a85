#include "exec/shipping.hpp"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/clock.hpp"
#include "base/seeded_fault.hpp"
#include "exec/abandon.hpp"
#include "exec/gathering.hpp"

namespace penstock::exec {
namespace {

// While others are to do something: first the core for them, then sleep, longer each time.
class Pause {
 public:
  void again() {
    if (++looks_ < kLooks) {
      ::sched_yield();
      return;
    }
    const timespec t{0, sleep_ns_};
    ::nanosleep(&t, nullptr);
    sleep_ns_ = std::min(sleep_ns_ * 2, kLongest_ns);
  }
  void reset() { *this = {}; }

 private:
  static constexpr int kLooks = 50;
  static constexpr long kLongest_ns = 1'000'000;
  int looks_ = 0;
  long sleep_ns_ = 20'000;
};

ParcelKind kind_of(const comm::Parcel& parcel) { return ParcelKind(parcel.bytes.front()); }

// Collective.
Result<std::pair<NodeMap, int>> map_nodes(comm::Comm& comm) {
  Result<comm::NodeComm> own = comm.split_by_node();
  if (!own) return tl::unexpected(std::move(own).error());
  const int32_t mine = own->node;
  std::vector<int32_t> node_of_rank(size_t(comm.size()));
  if (auto r = comm.allgather(std::as_bytes(std::span(&mine, 1)),
                              std::as_writable_bytes(std::span(node_of_rank)));
      !r)
    return tl::unexpected(std::move(r).error());
  return std::pair{NodeMap(node_of_rank), own->node};
}

}  // namespace

// --- Making it ---

Result<std::unique_ptr<Shipping>> Shipping::make(comm::Comm& comm, const Shape& shape) {
  auto map = map_nodes(comm);
  if (!map) return tl::unexpected(std::move(map).error());
  auto parcels = comm.parcels();
  if (!parcels) return tl::unexpected(std::move(parcels).error());
  int64_t single[] = {(*parcels)->by_any_thread() ? 0 : 1};
  if (auto r = comm.all_max(single); !r) return tl::unexpected(std::move(r).error());
  std::unique_ptr<Shipping> made(
      new Shipping(comm, shape, *std::move(parcels), std::move(map->first)));
  if (shape.progress == Progress::thread && single[0] != 0)
    made->move_by_calls("the program was not granted MPI_THREAD_MULTIPLE");
  return made;
}

Shipping::Shipping(comm::Comm& comm, const Shape& shape, std::unique_ptr<comm::Parcels> parcels,
                   NodeMap map)
    : comm_(comm),
      shape_(shape),
      map_(std::move(map)),
      node_(map_.node_of(comm.rank())),
      progress_(shape.progress),
      parcels_(std::move(parcels)),
      buffers_(shape.load_bytes, shape.limit_bytes) {}

void Shipping::move_by_calls(std::string why) {
  progress_ = Progress::calls;
  why_not_thread_ = std::move(why);
}

// --- Taking ---

int64_t Shipping::take(int64_t page, Stream& stream, StreamRange part, Pages& pages) {
  const int owner = owner_of(page);
  if (!is_foreign(owner)) return 0;
  std::unique_lock lock(mutex_);
  int64_t at = part.begin;
  while (at < part.end) {
    Load* const load = load_for(owner, pages, lock);
    if (load == nullptr) break;
    const layout::Run run = stream.run_at({at, at + std::min(part.end - at, load->room())});
    stream.pack(load->append(run), {at, at + run.bytes()});
    at += run.bytes();
    if (progress_ == Progress::thread && load->room() == 0) send(owner);
  }
  return at - part.begin;
}

// nullptr: the owner's bytes go to this node's pages.
Load* Shipping::load_for(int owner, Pages& pages, std::unique_lock<std::mutex>& lock) {
  for (Pause pause;;) {
    if (ended_ || here_.contains(owner)) return nullptr;
    // What is on its way in a collective call must not be overtaken by this node's pages, and to
    // wait for that call might be to wait for oneself: only here the limit is exceeded.
    const bool exceed = progress_ == Progress::calls && in_settle_;
    using enum SubBuffers::Limit;
    if (Load* const load = buffers_.filling(owner, exceed ? exceeded : kept)) return load;
    if (make_room(pages)) continue;
    lock.unlock();  // the I/O thread may find what has come
    pause.again();
    lock.lock();
  }
}

// Whether there may be some now.
bool Shipping::make_room(Pages& pages) {
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
  if (ended_ || here_.contains(owner)) return true;
  if (shape_.sharing != layout::Sharing::any) return false;
  return !buffers_.has(owner) && !touched_.contains(owner) && !settling_.contains(owner) &&
         !asked_.contains(owner);
}

// --- Moving ---

void Shipping::send(int owner) {
  for (Load& load : buffers_.take(owner)) {
    std::vector<std::byte> parcel = std::move(load).take();
    if (seeded_fault("load_lost")) {
      buffers_.give_back(std::move(parcel));
      continue;
    }
    ++traffic_.messages;
    traffic_.message_bytes += int64_t(parcel.size());
    parcels_->send(owner, std::move(parcel));
  }
  touched_.insert(owner);
}

void Shipping::send_word(int to, ParcelKind kind) { parcels_->send(to, {std::byte(kind)}); }

// To the pages of this node; so does what comes later for this owner.
void Shipping::keep_here(int owner, Pages& pages) {
  here_.insert(owner);
  for (Load& load : buffers_.take(owner)) {
    put(load.parcel(), pages);
    buffers_.give_back(std::move(load).take());
  }
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

// Whether anything has moved.
bool Shipping::progress_locked(Pages& pages) {
  bool moved = false;
  while (auto parcel = parcels_->delivered()) {
    moved = true;
    if (kind_of(*parcel) == ParcelKind::load) buffers_.give_back(std::move(parcel->bytes));
  }
  while (auto parcel = parcels_->receive()) {
    moved = true;
    take_in(*std::move(parcel), pages);
  }
  if (const Result<void> status = parcels_->status(); !status && !ended_) {
    note_failure(status.error());
    give_up(pages);
  }
  return moved;
}

void Shipping::take_in(comm::Parcel parcel, Pages& pages) {
  switch (kind_of(parcel)) {
    case ParcelKind::load:
      put(parcel.bytes, pages);
      return;
    case ParcelKind::flush:
      pages.flush();
      send_word(parcel.peer, ParcelKind::done);
      return;
    case ParcelKind::done:
      if (--asked_[parcel.peer] == 0) asked_.erase(parcel.peer);
      return;
  }
}

// Nobody can be relied on any more. What may not have been received is written here: rather twice
// than never.
void Shipping::give_up(Pages& pages) {
  ended_ = true;
  for (const comm::Parcel& parcel : parcels_->take_back())
    if (kind_of(parcel) == ParcelKind::load) put(parcel.bytes, pages);
  keep_all_here(pages);
  asked_.clear();
}

bool Shipping::step(Pages& pages) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  return lock && !ended_ && progress_locked(pages);
}

void Shipping::end(Pages& pages) {
  const std::lock_guard lock(mutex_);
  if (!ended_) give_up(pages);
}

void Shipping::send_older(double seconds, Pages& pages) {
  const std::lock_guard lock(mutex_);
  if (in_settle_) return;  // this node's pages must not overtake what is on its way
  for (const int owner : buffers_.owners_since(now_s() - seconds))
    if (progress_ == Progress::thread)
      send(owner);
    else
      keep_here(owner, pages);
}

bool Shipping::empty() const {
  const std::lock_guard lock(mutex_);
  return buffers_.loads() == 0;
}

// --- This rank alone ---

void Shipping::flush(Pages& pages) {
  std::unique_lock lock(mutex_);
  if (progress_ == Progress::calls || ended_)
    keep_all_here(pages);
  else
    ask_owners();
  lock.unlock();
  pages.flush();
  if (progress_ == Progress::calls) return;
  lock.lock();
  for (Pause pause; !asked_.empty() && !ended_;) {
    if (progress_locked(pages)) pause.reset();
    lock.unlock();
    pause.again();
    lock.lock();
  }
  const bool kept_after_all = ended_;
  lock.unlock();
  if (kept_after_all) pages.flush();
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

bool Shipping::anybody_has_any() {
  int64_t any[1];
  {
    const std::lock_guard lock(mutex_);
    any[0] = !buffers_.empty() || !touched_.empty() || !asked_.empty() ? 1 : 0;
  }
  if (const Result<void> r = comm_.all_max(any); !r) {
    const std::lock_guard lock(mutex_);
    note_failure(r.error());
    return false;
  }
  return any[0] != 0;
}

// Whether anything has moved between nodes: the same on all ranks.
bool Shipping::move_all(Pages& pages) {
  const bool any = anybody_has_any();
  {
    const std::lock_guard lock(mutex_);
    if (!any) here_.clear();  // what these had is flushed below, before another load is sent
    in_settle_ = any;
  }
  if (any) exchange(pages);
  pages.flush();
  if (!any) return false;
  const Result<void> met = comm_.barrier();  // all owners have flushed
  const std::lock_guard lock(mutex_);
  if (!met) note_failure(met.error());
  settling_.clear();
  in_settle_ = false;
  return true;
}

void Shipping::exchange(Pages& pages) {
  std::unique_lock lock(mutex_);
  for (const int owner : buffers_.owners()) send(owner);
  here_.clear();  // likewise
  settling_ = std::exchange(touched_, {});
  bool arrived = false;
  for (Pause pause;;) {
    if (progress_locked(pages)) pause.reset();
    if (!arrived && parcels_->under_way() == 0) {
      parcels_->arrive();
      arrived = true;
    }
    // Others wait for what this rank can no longer send or receive.
    if (ended_) abandon(failure_.value_or(Error{ErrorClass::communication, 0, "write behind", ""}));
    if (arrived && parcels_->all_have_arrived()) return;
    lock.unlock();
    pause.again();
    lock.lock();
  }
}

// --- Losses ---

namespace {

struct LossesOnTheWire {
  static constexpr size_t kWords = 6 + 2 * kMostLostTold;
  using Words = std::array<int64_t, kWords>;

  static Words write(const StagedNotes& notes, int node) {
    Words words{};
    words[0] = node;
    words[1] = notes.failures;
    words[2] = notes.lost_bytes;
    words[3] = notes.lost_told_in_part ? 1 : 0;
    words[4] = notes.failure->sys_errno;
    const size_t places = std::min(notes.lost.size(), kMostLostTold);
    words[5] = int64_t(places);
    for (size_t i = 0; i < places; ++i) {
      words[6 + 2 * i] = notes.lost[i].begin;
      words[7 + 2 * i] = notes.lost[i].end;
    }
    return words;
  }

  static StagedNotes read(const Words& words, ErrorClass error_class) {
    StagedNotes notes;
    notes.failures = words[1];
    notes.lost_bytes = words[2];
    notes.lost_told_in_part = words[3] != 0;
    notes.failure = Error{error_class, int(words[4]), "write behind", "of pages of another node"};
    for (int64_t i = 0; i < words[5]; ++i)
      notes.lost.push_back({words[size_t(6 + 2 * i)], words[size_t(7 + 2 * i)]});
    return notes;
  }
};

}  // namespace

// Collective. The worst loss of all; of several ranks that tell it, the lowest is heard.
void Shipping::share(const StagedNotes& mine) {
  const int64_t own = mine.failure ? int64_t(mine.failure->error_class) : 0;
  int64_t worst[1] = {own};
  if (!comm_.all_max(worst) || worst[0] == 0) return;
  int64_t teller[1] = {own == worst[0] ? -int64_t(comm_.rank())
                                       : std::numeric_limits<int64_t>::min()};
  if (!comm_.all_max(teller)) return;
  LossesOnTheWire::Words words;
  words.fill(std::numeric_limits<int64_t>::min());
  if (own == worst[0] && teller[0] == -int64_t(comm_.rank()))
    words = LossesOnTheWire::write(mine, node_);
  if (!comm_.all_max(words) || words[0] == node_) return;
  const std::lock_guard lock(mutex_);
  if (words[1] > told_.failures) told_ = LossesOnTheWire::read(words, ErrorClass(worst[0]));
}

void Shipping::add_losses(StagedNotes& to) const {
  const std::lock_guard lock(mutex_);
  to.failures += told_.failures + (failure_ ? 1 : 0);
  to.lost_bytes += told_.lost_bytes;
  to.lost.insert(to.lost.end(), told_.lost.begin(), told_.lost.end());
  to.lost_told_in_part = to.lost_told_in_part || told_.lost_told_in_part;
  to.failure = worst_of(worst_of(to.failure, told_.failure), failure_);
}

Traffic Shipping::traffic() const {
  const std::lock_guard lock(mutex_);
  return traffic_;
}

}  // namespace penstock::exec
