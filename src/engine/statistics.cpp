// Names of calls.
#include "engine/statistics.hpp"

namespace penstock::engine {

const char* to_string(CallKind k) noexcept {
  static constexpr std::array<const char*, size_t(CallKind::count)> kNames = {
      "write", "write_all", "write_at", "write_at_all", "read", "other", "sync"};
  const auto i = size_t(k);
  return i < kNames.size() ? kNames[i] : "?";
}

}  // namespace penstock::engine
