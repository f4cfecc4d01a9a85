// What a batch system lets a job's processes have: whoever takes more is killed, and not refused.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace penstock {

// Bytes of memory that this process's control group, of version 2 or 1, and all above it still let
// it take; what they keep of files counts as free. nullopt: nobody has set a limit. Reads /proc and
// /sys below `root`.
std::optional<int64_t> memory_left(const std::string& root = "");

// An answer that is believed for 10 ms, until the process has taken a thousandth of it; or for a
// second where there is no limit. To ask takes some twenty system calls, and the kernel may sum up
// its statistics for it; and many processes of a node may take memory at once. By several threads.
class RecentMemoryLeft {
 public:
  // Before `taking` bytes are taken.
  std::optional<int64_t> get(std::optional<int64_t> (*ask)(), int64_t taking);

 private:
  static constexpr int64_t kShare = 1024;
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

  std::atomic<double> believed_until_s_ = -std::numeric_limits<double>::infinity();
  std::atomic<int64_t> left_ = kNoLimit;
  std::atomic<int64_t> taken_ = 0;  // since then
};

// memory_left() for calls that come often, before each that takes `taking` bytes.
std::optional<int64_t> memory_left_lately(int64_t taking);

}  // namespace penstock
