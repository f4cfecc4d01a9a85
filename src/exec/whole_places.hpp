// Places of a repeated pattern that have been seen filled without a gap. Where all ranks' views
// repeat after the same extent, a page that was once filled block by block by all of them is filled
// just so whenever the pattern comes back to its place; then nobody needs to walk over its blocks
// again to know it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/extent.hpp"
#include "base/hash.hpp"
#include "exec/parties.hpp"

namespace penstock::exec {

class WholePlaces {
 public:
  // A new call. What is known of another pattern, or of other ranks, is forgotten.
  void begin(const Parties& all, Off page_bytes);

  // Every byte of it is brought in this call.
  bool hold(Extent where) const;
  // That was found out block by block.
  void learn(Extent where);
  // What learn() would keep: no rank's range of this call ends within it.
  bool would_keep(Extent where) const noexcept {
    return repeats_ && in_full_.begin <= where.begin && where.end <= in_full_.end;
  }

 private:
  struct Member {
    int rank;
    const layout::FileView& view;
    StreamRange own;
  };
  template <class Visit>
  static void for_each_member(const Parties& all, Visit&& visit);
  static bool repeat_alike(const Parties& all);
  static Hash pattern_of(const Parties& all);
  void meet(const Parties& all, Off page_bytes);
  Extent range_in_full(const Member& m) const;
  template <class Visit>
  bool for_each_place(Extent where, Visit&& visit) const;
  bool is_known(Extent place) const;
  void keep(Extent place);

  // Of the call.
  bool repeats_ = false;
  Extent in_full_;  // here all ranks bring all that their views name
  Off anchor_ = 0;  // a file offset at which a turn of the pattern begins
  // Of the pattern.
  Hash pattern_ = 0;
  Off extent_ = 0;             // of a turn
  std::optional<Off> turn_;    // where one begins, from the first member's tile; nullopt: nowhere
  std::vector<Extent> known_;  // in a turn; ascending, apart; room for more was taken before
};

}  // namespace penstock::exec
