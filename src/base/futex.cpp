#include "base/futex.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace penstock {
namespace {

constexpr int64_t kSecond_ns = 1'000'000'000;

// Without FUTEX_PRIVATE_FLAG: the waker may be another process.
uint32_t* address(const FutexWord& word) noexcept {
  return reinterpret_cast<uint32_t*>(const_cast<FutexWord*>(&word));
}

}  // namespace

void futex_wait(const FutexWord& word, uint32_t expected, int64_t at_most_ns) noexcept {
  const timespec t{time_t(at_most_ns / kSecond_ns), long(at_most_ns % kSecond_ns)};
  ::syscall(SYS_futex, address(word), FUTEX_WAIT, expected, &t, nullptr, 0);
}

void futex_wake_all(FutexWord& word) noexcept {
  ::syscall(SYS_futex, address(word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace penstock
