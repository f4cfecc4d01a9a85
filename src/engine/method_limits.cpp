// What the numbers of a method may be, wherever they are given: in its text, by a configuration key
// or a hint.
#include <string>

#include "base/units.hpp"
#include "engine/method.hpp"
#include "engine/method_part.hpp"

namespace penstock::engine {
namespace {

constexpr int64_t kLeastStaged = kPageStep, kMostStaged = int64_t{1} << 40;
constexpr int64_t kLeastPage = kPageStep, kMostPage = int64_t{64} << 20;
constexpr int64_t kLeastLimit = int64_t{1} << 20, kMostLimit = int64_t{1} << 40;
constexpr int kMostSeconds = 86'400;

Result<int64_t> check_pages(const char* what, int64_t bytes) {
  if (bytes < kPageStep || bytes > plan::kMaxCycleBytes || bytes % kPageStep != 0)
    return refuse(std::string(what) + " must be a multiple of 4096 bytes between " +
                  format_size(kPageStep) + " and " + format_size(plan::kMaxCycleBytes) + ", got " +
                  std::to_string(bytes));
  return bytes;
}

// 0 leaves it to the engine.
Result<int64_t> check_range(const char* what, int64_t bytes, int64_t least, int64_t most) {
  if (bytes == 0 || (bytes >= least && bytes <= most)) return bytes;
  return refuse(std::string(what) + " must be 0 or " + format_size(least) + " to " +
                format_size(most) + ", got " + std::to_string(bytes));
}

}  // namespace

Result<int64_t> check_sync_bytes(int64_t sync_bytes) {
  if (sync_bytes < 1)
    return refuse("the bytes of a sync must be at least 1, got " + std::to_string(sync_bytes));
  return sync_bytes;
}

Result<int> check_writers(int64_t writers) {
  if (writers < 0 || writers > kMaxWriters)
    return refuse("writers must be between 0 and " + std::to_string(kMaxWriters) + ", got " +
                  std::to_string(writers));
  return int(writers);
}

Result<int> check_writer(int64_t rank) {
  if (rank < 0 || rank >= kMaxWriters)
    return refuse("writer must be a rank, between 0 and " + std::to_string(kMaxWriters - 1) +
                  ", got " + std::to_string(rank));
  return int(rank);
}

Result<int64_t> check_staged(int64_t limit_bytes) {
  if (limit_bytes == 0 || (limit_bytes >= kLeastStaged && limit_bytes <= kMostStaged))
    return limit_bytes;
  return refuse("limit of staged must be 0 or between " + format_size(kLeastStaged) + " and " +
                format_size(kMostStaged) + ", got " + std::to_string(limit_bytes));
}

Result<int64_t> check_behind_page(int64_t page_bytes) {
  return check_range("write_behind_page", page_bytes, kLeastPage, kMostPage);
}

Result<int64_t> check_behind_limit(int64_t limit_bytes) {
  return check_range("write_behind_limit", limit_bytes, kLeastLimit, kMostLimit);
}

Result<int64_t> check_behind_subbuffer(int64_t load_bytes) {
  return check_range("write_behind_subbuffer", load_bytes, kLeastPage, kMostPage);
}

Result<int> check_behind_seconds(int64_t seconds) {
  if (seconds < 0 || seconds > kMostSeconds)
    return refuse("write_behind_seconds must be an integer from 0 to " +
                  std::to_string(kMostSeconds) + ", got " + std::to_string(seconds));
  return int(seconds);
}

Result<int> check_at_once(int64_t ranks) {
  if (ranks < 0 || ranks > kMaxWriters)
    return refuse("at_once must be between 0 and " + std::to_string(kMaxWriters) + ", got " +
                  std::to_string(ranks));
  return int(ranks);
}

Result<int64_t> check_cycle(int64_t cycle_bytes) { return check_pages("cycle", cycle_bytes); }
Result<int64_t> check_stripe(int64_t stripe_bytes) { return check_pages("stripe", stripe_bytes); }

}  // namespace penstock::engine
