// What ranks learn of each other in one collective: each brings its facts, all read the answers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.hpp"
#include "comm/comm.hpp"

namespace penstock::comm {

// Every rank asks the same, in the same order, then calls reach(); until then, and where reach()
// fails, the answers are those of this rank alone. No allocation.
//
//   comm::Agreement agreement;
//   const auto full = agreement.some(disk_is_full);
//   const auto same_file = agreement.alike(inode);
//   if (auto r = agreement.reach(comm); !r) return r;
//   if (agreement[full] || !agreement[same_file]) ...
class Agreement {
 public:
  static constexpr size_t kMost = 32;  // places: alike() takes two, others one

  struct Some {
    size_t at;
  };
  struct Alike {
    size_t at;
  };
  struct Largest {
    size_t at;
  };

  Some some(bool here) { return {add(here ? 1 : 0)}; }   // is it so on some rank?
  Largest largest(int64_t here) { return {add(here)}; }  // the largest value of any rank
  Alike alike(int64_t here) {                            // has every rank the same value?
    const size_t at = add(here);
    add(~here);  // which every value has, unlike its negative
    return {at};
  }

  // Collective.
  Result<void> reach(Comm& comm) {
    return reach_by([&](std::span<int64_t> facts) { return comm.all_max(facts); });
  }
  // Likewise, where ranks have no Comm yet.
  template <class AllMax>
  Result<void> reach_by(AllMax all_max) {
    return all_max(std::span(facts_).first(count_));
  }

  bool operator[](Some s) const { return facts_.at(s.at) != 0; }
  int64_t operator[](Largest l) const { return facts_.at(l.at); }
  bool operator[](Alike a) const { return facts_.at(a.at) == ~facts_.at(a.at + 1); }

 private:
  size_t add(int64_t fact) {
    facts_.at(count_) = fact;
    return count_++;
  }

  std::array<int64_t, kMost> facts_{};
  size_t count_ = 0;
};

}  // namespace penstock::comm
