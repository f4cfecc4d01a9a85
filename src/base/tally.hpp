// A sum that one thread at a time adds to, and that any may read meanwhile: no lock, and no
// instruction that other cores have to hear of.
#pragma once

#include <atomic>

namespace penstock {

template <class T>
class Tally {
 public:
  // Those who add take turns, by a lock of theirs.
  void add(T n) noexcept { set(sum() + n); }
  void set(T sum) noexcept { sum_.store(sum, std::memory_order_relaxed); }
  T sum() const noexcept { return sum_.load(std::memory_order_relaxed); }

 private:
  std::atomic<T> sum_ = 0;
  static_assert(std::atomic<T>::is_always_lock_free);
};

}  // namespace penstock
