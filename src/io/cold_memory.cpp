// From what writes cost to how the next ones go.
//
//   watched --cold--> tried --pays--> kept --pays no more, or memory may be warm by now--> watched
//                       \--else--> resting, longer each time --> watched
#include "io/cold_memory.hpp"

#include <algorithm>
#include <cstdlib>

namespace penstock::io {
namespace {

// In stretches.
constexpr int64_t kTried = 2;
constexpr int64_t kKept = 8;       // disks stall
constexpr int64_t kLooks = 256;    // memory may have become warm
constexpr int64_t kFirstRest = 4;  // four times as long after each further trial that did not pay
constexpr int kMostRests = 8;
// Of a write.
constexpr int64_t kLongestTried = int64_t{1} << 20, kLongestKept = int64_t{4} << 20;

}  // namespace

const ColdRule& cold_rule() noexcept {
  static const ColdRule rule = std::getenv("PENSTOCK_TEST_COLD") ? kAlwaysCold : ColdRule{};
  return rule;
}

int64_t ColdMemory::most_bytes() const noexcept {
  if (kept()) return kLongestKept;
  return way() == Way::direct ? kLongestTried : rule_.stretch_bytes;
}

void ColdMemory::wrote(Way way, const WriteCost& cost) noexcept {
  const std::lock_guard lock(mutex_);
  if (phase() == Phase::over || way != this->way()) return;  // begun before the last decision
  stretch_.add(cost);
  if (stretch_.bytes >= stretch_bytes_ || has_lost()) decide();
}

void ColdMemory::give_up() noexcept {
  const std::lock_guard lock(mutex_);
  begin(Phase::over, 0);
}

void ColdMemory::decide() noexcept {
  const int64_t stretch = rule_.stretch_bytes;
  switch (phase()) {
    case Phase::watched:
      if (!is_cold()) return begin(Phase::watched, stretch);
      buffered_s_ = stretch_.wall_s / double(stretch_.bytes);
      kept_bytes_ = 0;
      return begin(Phase::tried, kTried * stretch);
    case Phase::tried:
      if (!pays()) return begin(Phase::resting, stretch * kFirstRest << 2 * rests_);
      rests_ = 0;
      return begin(Phase::kept, kKept * stretch);
    case Phase::kept:
      kept_bytes_ += stretch_.bytes;
      return pays() && kept_bytes_ < kLooks * stretch ? begin(Phase::kept, kKept * stretch)
                                                      : begin(Phase::watched, stretch);
    case Phase::resting:
      return begin(Phase::watched, stretch);
    case Phase::over:
      return;
  }
}

void ColdMemory::begin(Phase phase, int64_t stretch_bytes) noexcept {
  if (phase == Phase::resting) rests_ = std::min(rests_ + 1, kMostRests);
  phase_ = phase;
  stretch_bytes_ = stretch_bytes;
  stretch_ = {};
}

bool ColdMemory::is_cold() const noexcept {
  return stretch_.processor_s * 1e9 >= rule_.least_ns * double(stretch_.bytes);
}

bool ColdMemory::pays() const noexcept {
  return stretch_.wall_s <= rule_.most_of_buffered * buffered_s_ * double(stretch_.bytes);
}

// A trial need not end before it is known to be none.
bool ColdMemory::has_lost() const noexcept {
  return way() == Way::direct &&
         stretch_.wall_s > rule_.most_of_buffered * buffered_s_ * double(stretch_bytes_);
}

}  // namespace penstock::io
