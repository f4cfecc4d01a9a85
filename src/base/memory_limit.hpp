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

// An answer that is believed for 10 ms, or for a second where there is no limit: to ask takes some
// twenty system calls, and the kernel may sum up its statistics for it. By several threads at once.
class RecentMemoryLeft {
 public:
  std::optional<int64_t> get(std::optional<int64_t> (*ask)());

 private:
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

  std::atomic<double> believed_until_s_ = -std::numeric_limits<double>::infinity();
  std::atomic<int64_t> left_ = kNoLimit;
};

// memory_left() for calls that come often.
std::optional<int64_t> memory_left_lately();

}  // namespace penstock
