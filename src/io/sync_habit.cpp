#include "io/sync_habit.hpp"

#include <atomic>

namespace penstock::io {
namespace {

std::atomic<SyncHabit> seen = SyncHabit::unknown;
std::atomic<SyncHabit> expected = SyncHabit::unknown;

}  // namespace

SyncHabit sync_habit() noexcept {
  const SyncHabit done = seen;
  return done != SyncHabit::unknown ? done : expected.load();
}

void note_synced() noexcept { seen = SyncHabit::syncs; }
void note_closed_unsynced() noexcept { seen = SyncHabit::does_not; }

void expect_syncs(bool linked_to_a_sync) noexcept {
  expected = linked_to_a_sync ? SyncHabit::syncs : SyncHabit::does_not;
}

void forget_sync_habit() noexcept { seen = expected = SyncHabit::unknown; }

}  // namespace penstock::io
