// What of a node's file pages could not be written, in memory that its processes share: of many the
// first places are told, and the sum of all.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/error.hpp"
#include "base/extent.hpp"
#include "exec/pipeline.hpp"
#include "exec/plain_error.hpp"
#include "exec/shared_lock.hpp"

namespace penstock::exec {

// All zero bytes: nothing is lost. Thread-safe, for all processes that share it.
class PageLosses {
 public:
  // `bytes` of `where`, which may have holes.
  void add(Extent where, int64_t bytes, const Error& why) noexcept;
  int64_t failures() const noexcept { return failures_.load(std::memory_order_acquire); }
  int64_t bytes() const noexcept;
  void add_to(StagedNotes& notes) const;

 private:
  mutable SharedLock lock_;
  PlainError worst_;
  int64_t bytes_;
  uint32_t places_;
  bool told_in_part_;
  std::array<Extent, kMostLostTold> where_;
  std::atomic<int64_t> failures_;
};

}  // namespace penstock::exec
