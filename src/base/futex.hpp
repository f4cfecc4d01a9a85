// Sleeping on a word until it changes, by futex(2). The word may lie in memory that processes
// share, which std::atomic::wait does not promise.
#pragma once

#include <atomic>
#include <cstdint>

namespace penstock {

using FutexWord = std::atomic<uint32_t>;
static_assert(FutexWord::is_always_lock_free && sizeof(FutexWord) == sizeof(uint32_t));

// Of a rank or a thread in a loop, should whoever was to wake it have died.
inline constexpr int64_t kLongestSleep_ns = 100'000'000;

// Sleeps while the word holds `expected`, at most so long. May return early: look again.
void futex_wait(const FutexWord& word, uint32_t expected, int64_t at_most_ns) noexcept;
// Everybody who sleeps on the word looks again.
void futex_wake_all(FutexWord& word) noexcept;

}  // namespace penstock
