// What a rank has packed for the owners of other nodes' file pages: the first stage of liao-2007's
// write-behind. Each owner has the loads that are still here, in the order in which they were
// packed; the last of them is being filled. All loads come from one bounded pool, at their first
// byte, so memory follows the owners that are touched and not the ranks there are.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "exec/load.hpp"

namespace penstock::exec {

class SubBuffers {
 public:
  // At least one load, whatever the limit.
  SubBuffers(int64_t load_bytes, int64_t limit_bytes) noexcept;

  enum class Limit : uint8_t { kept, exceeded };
  // The load that is being filled for this owner, with room; begins the next one where it is full,
  // or there is none. nullptr: no further load within the limit. Until the next call of any kind.
  Load* filling(int owner, Limit limit = Limit::kept);
  // An owner's loads, oldest first, no longer here. They count towards the limit until they are
  // given back.
  std::vector<Load> take(int owner);
  // Likewise its oldest; nullopt: it has none.
  std::optional<Load> take_first(int owner);
  void give_back(std::vector<std::byte> parcel);
  // An owner's loads that `copy` has not been given as they are now, oldest first. They stay here,
  // and count as old only by what comes later.
  template <class Copy>
  void copy_news(int owner, Copy&& copy);
  // What that was given is news again, that came then or before.
  void forget_copies(int owner, double came_s);

  // Whose loads bring the most bytes; nullopt: nobody has any.
  std::optional<int> fullest() const;
  std::vector<int> owners() const;  // that have any
  // Whose oldest byte that was not copied came then or before.
  std::vector<int> owners_since(double s) const;
  bool empty() const noexcept { return by_owner_.empty(); }
  bool has(int owner) const { return by_owner_.contains(owner); }
  bool has_full(int owner) const;   // at least one
  Extent hull_of(int owner) const;  // of all that is here for it
  double came_s(int owner) const;   // of those, its oldest byte, or before. REQUIRES has(owner).
  int loads() const noexcept { return loads_; }  // here and on their way
  size_t memory_bytes() const noexcept;          // of the books, without the loads

 private:
  static constexpr double kNotYet_s = std::numeric_limits<double>::infinity();
  struct Packed {
    std::vector<Load> loads;
    int64_t bytes = 0;          // of data, but for the load that is being filled
    double came_s = kNotYet_s;  // the oldest that was not copied
    int64_t data_bytes() const noexcept { return bytes + loads.back().data_bytes(); }
  };
  Packed& add_owner(int owner);
  Packed& add_load(Packed& packed);
  Load& to_append(Packed& packed);
  Load next_load();

  const int64_t load_bytes_;
  const int most_loads_;
  int loads_ = 0;
  std::unordered_map<int, Packed> by_owner_;
  std::vector<std::vector<std::byte>> idle_;  // memory that was given back
};

template <class Copy>
void SubBuffers::copy_news(int owner, Copy&& copy) {
  Packed& packed = by_owner_.at(owner);
  for (Load& load : packed.loads) {
    if (!load.has_news()) continue;
    copy(load.parcel());
    load.note_copied();
  }
  packed.came_s = kNotYet_s;
}

}  // namespace penstock::exec
