// Whether writes through the page cache wait for cold memory: pages that the host of a virtual
// machine has taken back, or that others must be dropped for, cost microseconds each at their first
// touch. Buffers that stay warm, written past the page cache, then reach the disk several times as
// fast. Nobody tells a program so; what a write costs the processor does
// (docs/decisions/0078-cold-memory.md).
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace penstock::io {

enum class Way : uint8_t { buffered, direct };  // through the page cache, past it

// When memory counts as cold, and what of it pays.
struct ColdRule {
  // Processor time of the writing thread for a byte that it copies into the page cache. Warm, 0.1
  // to 1 ns.
  double least_ns = 1.5;
  double most_of_buffered = 0.6;  // time past the page cache, of that through it; more is not worth
  int64_t stretch_bytes = int64_t{2} << 20;  // looked at before a decision
  int64_t least_bytes = int64_t{256} << 10;  // of a write; shorter ones are not looked at
};

// After the first 4 KiB, as if memory were cold and it paid.
inline constexpr ColdRule kAlwaysCold{
    .least_ns = 0, .most_of_buffered = 1e9, .stretch_bytes = 4096, .least_bytes = 1};

// The usual one; with PENSTOCK_TEST_COLD in the environment kAlwaysCold.
const ColdRule& cold_rule() noexcept;

// What some writes took.
struct WriteCost {
  int64_t bytes = 0;
  double wall_s = 0, processor_s = 0;

  void add(const WriteCost& other) noexcept {
    bytes += other.bytes;
    wall_s += other.wall_s;
    processor_s += other.processor_s;
  }
};

// Decides for one file of one process, from stretch to stretch. By several threads at once.
class ColdMemory {
 public:
  explicit ColdMemory(const ColdRule& rule) noexcept
      : rule_(rule), stretch_bytes_(rule.stretch_bytes) {}

  bool concerns(int64_t bytes) const noexcept {
    return bytes >= rule_.least_bytes && phase() != Phase::over;
  }
  // Of a write, at once, so that a decision comes in time: a trial is of short ones.
  int64_t most_bytes() const noexcept;
  // It goes past the page cache, and that pays.
  bool kept() const noexcept { return phase() == Phase::kept; }
  // How the next bytes go.
  Way way() const noexcept {
    const Phase now = phase();
    return now == Phase::tried || now == Phase::kept ? Way::direct : Way::buffered;
  }
  // What a write cost that went so.
  void wrote(Way way, const WriteCost& cost) noexcept;
  // From now on through the page cache.
  void give_up() noexcept;

 private:
  // `watched` and `resting` go through the page cache, `tried` and `kept` past it.
  enum class Phase : uint8_t { watched, tried, kept, resting, over };

  Phase phase() const noexcept { return phase_.load(std::memory_order_relaxed); }
  void decide() noexcept;
  void begin(Phase phase, int64_t stretch_bytes) noexcept;
  bool is_cold() const noexcept;
  bool pays() const noexcept;
  bool has_lost() const noexcept;

  const ColdRule rule_;
  std::mutex mutex_;  // of changes of the phase, and of what follows
  std::atomic<Phase> phase_ = Phase::watched;
  WriteCost stretch_;  // since the last decision
  int64_t stretch_bytes_;
  double buffered_s_ = 0;   // for a byte through the page cache, in cold memory
  int64_t kept_bytes_ = 0;  // since memory was looked at
  int rests_ = 0;
};

}  // namespace penstock::io
