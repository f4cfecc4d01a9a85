// Does this program push its files to the device? Nobody says so before it has written; whether
// write-back that begins early pays, or only takes cores and the device from who will never wait
// for them, depends on it. What is known, in order: what the program did last, and which functions
// it was linked to.
#pragma once

#include <cstdint>

namespace penstock::io {

enum class SyncHabit : uint8_t { unknown, syncs, does_not };

// Of this process, by any thread.
SyncHabit sync_habit() noexcept;
// It has synced a file, or closed one that it had written without a sync.
void note_synced() noexcept;
void note_closed_unsynced() noexcept;
// What its symbols let expect; what it does counts for more.
void expect_syncs(bool linked_to_a_sync) noexcept;

// As before anything was known. For tests.
void forget_sync_habit() noexcept;

}  // namespace penstock::io
