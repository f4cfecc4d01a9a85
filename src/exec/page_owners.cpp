#include "exec/page_owners.hpp"

#include <algorithm>
#include <utility>

#include "base/clock.hpp"

namespace penstock::exec {

// Written by its rank before the ranks meet; atomics after that.
struct alignas(64) PageOwners::Member {
  Bell::Address bell;
  int32_t rank;
  std::atomic<bool> attends;
  std::atomic<bool> asked;
};

namespace {

constexpr double kBetweenLooks_s = 0.05;

// In front of the members.
struct alignas(64) Joined {
  std::atomic<uint32_t> count;
};

}  // namespace

size_t PageOwners::bytes_for(int ranks) {
  return sizeof(Joined) + size_t(std::min(ranks, kMost)) * sizeof(Member);
}

PageOwners::PageOwners(std::shared_ptr<comm::SharedSegment> segment, size_t at, int ranks, int rank,
                       const std::optional<Bell::Address>& bell)
    : segment_(std::move(segment)), ranks_(ranks) {
  auto* const joined = reinterpret_cast<Joined*>(segment_->memory().data() + at);
  members_ = {reinterpret_cast<Member*>(joined + 1), size_t(std::min(ranks, kMost))};
  joined_ = &joined->count;
  const uint32_t place = joined_->fetch_add(1, std::memory_order_relaxed);
  if (place >= members_.size()) return;
  mine_ = int(place);
  Member& me = members_[place];
  me.rank = rank;
  me.bell = bell.value_or(Bell::unheard());
  me.attends.store(bell.has_value(), std::memory_order_release);
}

PageOwners::~PageOwners() {
  if (mine_ >= 0) members_[size_t(mine_)].attends.store(false, std::memory_order_release);
}

void PageOwners::one_more() { handles_.fetch_add(1, std::memory_order_relaxed); }

void PageOwners::one_less() {
  if (handles_.fetch_sub(1, std::memory_order_acq_rel) > 1 || mine_ < 0) return;
  members_[size_t(mine_)].attends.store(false, std::memory_order_release);
}

void PageOwners::all_have_joined() {
  const auto n = std::min<size_t>(joined_->load(std::memory_order_acquire), members_.size());
  owners_.resize(n);
  for (size_t i = 0; i < n; ++i) owners_[i] = int(i);
  std::ranges::sort(owners_, {}, [&](int place) { return members_[size_t(place)].rank; });
  known_ = std::vector<Known>(n);
}

// Of another node's page, which is here since nothing could be sent there, somebody is the owner.
int PageOwners::owner_of(int64_t page) const noexcept {
  const auto rank_at = [this](int place) { return members_[size_t(place)].rank; };
  const auto rank = int(page % ranks_);
  const auto found = std::ranges::lower_bound(owners_, rank, {}, rank_at);
  if (found != owners_.end() && rank_at(*found) == rank) return *found;
  return owners_[size_t(page) % owners_.size()];
}

// Who was asked and has not looked yet, has been rung already.
bool PageOwners::ask(int owner) {
  Member& member = members_[size_t(owner)];
  if (!member.attends.load(std::memory_order_acquire)) return false;
  FarBell* const bell = bell_of(owner);
  if (bell == nullptr) return false;
  if (!member.asked.exchange(true, std::memory_order_acq_rel)) bell->ring();
  return true;
}

bool PageOwners::was_asked() noexcept {
  return mine_ >= 0 && members_[size_t(mine_)].asked.load(std::memory_order_relaxed) &&
         members_[size_t(mine_)].asked.exchange(false, std::memory_order_acq_rel);
}

// Asked for many pages at once, so the machine is asked seldom.
bool PageOwners::answers(int owner) {
  Member& member = members_[size_t(owner)];
  if (!member.attends.load(std::memory_order_acquire)) return false;
  {
    const std::lock_guard lock(mutex_);
    double& looked_s = known_[size_t(owner)].looked_s;
    if (now_s() - looked_s < kBetweenLooks_s) return true;
    looked_s = now_s();
  }
  if (!is_gone(owner)) return true;
  member.attends.store(false, std::memory_order_release);
  return false;
}

bool PageOwners::is_gone(int place) const {
  return place >= 0 && process_is_gone(members_[size_t(place)].bell);
}

FarBell* PageOwners::bell_of(int owner) {
  const std::lock_guard lock(mutex_);
  Known& known = known_[size_t(owner)];
  if (!known.bell) known.bell = FarBell::find(members_[size_t(owner)].bell);
  return known.bell->get();
}

}  // namespace penstock::exec
