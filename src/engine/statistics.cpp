// Names of calls, and of what size they are.
#include "engine/statistics.hpp"

#include <algorithm>
#include <bit>

namespace penstock::engine {

const char* to_string(CallKind k) noexcept {
  static constexpr std::array<const char*, size_t(CallKind::count)> kNames = {
      "write", "write_all", "write_at", "write_at_all", "read", "other", "sync"};
  const auto i = size_t(k);
  return i < kNames.size() ? kNames[i] : "?";
}

int size_bucket(int64_t bytes) noexcept {
  const int log2 = std::bit_width(uint64_t(std::max<int64_t>(bytes, 1)) - 1);  // rounded up
  return std::clamp((log2 - 4 + 1) / 2, 0, kSizeBuckets - 1);
}

}  // namespace penstock::engine
