// What the policies that act between writes have in common: when the next time is due, and what one
// failure means for ever. Both thread-safe, both with a lock that is held for no longer than it
// takes to count.
#pragma once

#include <cassert>
#include <cstdint>
#include <mutex>
#include <optional>

#include "base/error.hpp"

namespace penstock::io {

enum class Beat : uint8_t {
  anew,     // counted from the last time on, whatever a write brought beyond it
  in_step,  // at each multiple of so many bytes: at the same points, however the writes are cut
};

class DueBytes {
 public:
  // REQUIRES every_bytes > 0.
  explicit DueBytes(int64_t every_bytes, Beat beat = Beat::anew)
      : every_bytes_(every_bytes), beat_(beat) {
    assert(every_bytes > 0);
  }

  // true: with these bytes it is due. Once, however many they are.
  bool add(int64_t bytes) {
    const std::lock_guard lock(mutex_);
    bytes_ += bytes;
    if (bytes_ < every_bytes_) return false;
    bytes_ = beat_ == Beat::anew ? 0 : bytes_ % every_bytes_;
    return true;
  }

  int64_t every_bytes() const noexcept { return every_bytes_; }

 private:
  const int64_t every_bytes_;
  const Beat beat_;
  std::mutex mutex_;
  int64_t bytes_ = 0;
};

// The first failure of a file's syncs.
class FirstFailure {
 public:
  void remember(const Error& error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = error;
  }

  // A sync that succeeds now says nothing of pages that an earlier one has lost.
  Result<void> all_of_them(Result<void> now) const {
    const std::lock_guard lock(mutex_);
    if (error_) return tl::unexpected(*error_);
    return now;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<Error> error_;
};

}  // namespace penstock::io
