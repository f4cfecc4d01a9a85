// What lies in the segment of a pool of pages, for page_pool.cpp.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/futex.hpp"
#include "exec/page_pool.hpp"
#include "exec/shared_lock.hpp"

namespace penstock::exec {

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): cache lines apart on purpose
struct PagePool::Header {
  SharedLock lock;            // of the free slots, and of the table
  uint32_t first_free;        // a slot's index + 1; 0: none
  std::atomic<int> used;      // slots for which memory was asked
  std::atomic<int> unusable;  // of these, without memory, or never given out again
  std::atomic<double> lack_ends_s;
  PageLosses losses;
  std::atomic<bool> several_handles;

  alignas(64) std::array<std::atomic<uint64_t>, kMostOffered> offers;  // kNoStay, or a stay
  std::atomic<double> writing_since_s;                                 // kNobodyWrites, or a time
  alignas(64) std::atomic<uint64_t> clock;
  alignas(64) std::atomic<int> held;  // slots that are not free
  FutexWord departures;
  std::atomic<uint32_t> completed;  // pages that were full when they left
};

struct alignas(64) PagePool::Slot {
  std::atomic<uint64_t> word;
  std::atomic<int64_t> page;
  std::atomic<int64_t> dirty_bytes;
  std::atomic<uint64_t> last_use;
  std::atomic<double> came_s;  // by the machine's clock
  std::atomic<int> writer;     // who closed it; -1: nobody yet
  std::atomic<uint64_t> came;  // bits of the guests that came in this stay
  DirtyMap::Word touched;      // of the dirty map
  FutexWord left;              // stays that are over
  FutexWord unpinned;          // how often the last pin was given back of a page that is leaving
  uint32_t next;               // in the chain of its bucket, or of free slots; an index + 1
  bool taken_over;             // from a writer that was taken for dead
};

struct alignas(64) PagePool::Guest {
  std::atomic<uint64_t> holds;  // kNoStay, or a stay
};

}  // namespace penstock::exec
