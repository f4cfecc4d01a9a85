// A rank that is ahead of others lets them complete the pages that it has left.
#include <limits>

#include "base/backoff.hpp"
#include "base/clock.hpp"
#include "exec/write_behind.hpp"

namespace penstock::exec {
namespace {

// A rank looks that often for a page that others complete: less than memory for a page of 1 MiB
// takes, where nobody waits for its core, and else some time slices of theirs.
constexpr int kLooks = 1000;
constexpr double kLongestLook_s = 0.03;
constexpr double kLongestWait_s = 0.1;  // for other nodes

}  // namespace

// Ranks that go through the file together complete the pages that this one has left, and these are
// warm: memory that is in use again is neither cleared nor taken into page tables.
bool WriteBehind::others_complete_a_page(uint32_t seen, Returns returns) {
  if (owners_->count() == 1 || pool_->used() < ahead_) return false;
  return looks_([&] { return pool_->look_for_room(seen, returns, kLooks, kLongestLook_s); });
}

// What comes into memory meanwhile is not waited for, so that who writes on and on holds nobody up.
void WriteBehind::let_others_complete(const Target& target) {
  if (owners_->count() == 1) return;
  for (int left = pool_->used(); left > 0 && !pool_->empty(); --left) {
    const uint32_t seen = pool_->departures();
    if (!pool_->look_for_room(seen, Returns::soon, kLooks, kLongestLook_s)) return;
    write_offered(target);
  }
}

// A quarter of the room is for what those who are ahead on other nodes send meanwhile.
bool WriteBehind::is_room_scarce() const { return pool_->held() >= pool_->slots_in_all() / 4 * 3; }

// Where room is scarce, pages leave in parts, each of them a write. What completes them may be on
// its way from other nodes, whose I/O threads send it. In vain it is where none is completed: these
// ranks wait as well, or the program leaves holes.
void WriteBehind::let_other_nodes_follow(int64_t page, Returns returns) {
  if (shipping_ == nullptr || shipping_->progress() != Progress::thread) return;
  if (returns == Returns::at_once || !is_room_scarce() || pool_->find(page)) return;
  const auto last = last_before(std::numeric_limits<int64_t>::max());
  if (!last || last->page > page) return;  // it is not ahead
  (void)waits_([&] { return waits_for_other_nodes(); });
}

bool WriteBehind::waits_for_other_nodes() {
  ++waited_;
  const double end_s = now_s() + kLongestWait_s;
  const uint32_t seen = pool_->completed();
  for (Backoff backoff; pool_->completed() == seen; backoff.pause()) {
    if (pool_->wants_writer(now_s())) return true;  // of one that is complete
    if (!is_room_scarce() || now_s() > end_s) return false;
  }
  return true;
}

}  // namespace penstock::exec
