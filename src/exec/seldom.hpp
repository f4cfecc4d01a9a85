// What is tried more and more seldom where it is in vain.
#pragma once

#include <algorithm>
#include <atomic>

namespace penstock::exec {

// After each try in vain twice as many are passed over before the next, up to 2^most. Of several
// threads each may try.
class Seldom {
 public:
  explicit Seldom(int most) noexcept : most_(most) {}

  // Whether it was tried, and not in vain.
  template <class Try>
  bool operator()(Try&& attempt) {
    if (to_pass_ > 0) {
      --to_pass_;
      return false;
    }
    const bool done = attempt();
    vain_ = done ? 0 : std::min(vain_ + 1, most_);
    to_pass_ = done ? 0 : 1 << vain_;
    return done;
  }

 private:
  const int most_;
  std::atomic<int> vain_ = 0;  // since one that was not
  std::atomic<int> to_pass_ = 0;
};

}  // namespace penstock::exec
