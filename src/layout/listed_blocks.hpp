// The blocks of an irregular list, without a step of the walk for each: a step stores the walk's
// state, and the processor keeps few stores in flight, which blocks that are not in its caches need
// (docs/decisions/0060). Internal to src/layout.
#pragma once

#include <cstdint>

#include "layout/cursor.hpp"
#include "layout/node.hpp"

namespace penstock::layout {

// Where the entries of a node lie, with all that it takes in registers. A node of blocks has their
// one length, one of segments where each begins in the stream.
class ListedEntries {
 public:
  explicit ListedEntries(const Node& node)
      : places_(node.displacements),
        starts_(node.starts),
        each_(node.starts.empty() ? node.child->size : 0) {}

  Off place(int64_t i) const noexcept { return places_[i]; }
  int64_t length(int64_t i) const noexcept {
    return each_ > 0 ? each_ : starts_[i + 1] - starts_[i];
  }

 private:
  class Numbers {
   public:
    explicit Numbers(const OffsetList& list)
        : narrow_(list.units().data()), wide_(list.bytes().data()), unit_(list.unit()) {}
    int64_t operator[](int64_t i) const noexcept {
      return unit_ != 0 ? int64_t{narrow_[i]} * unit_ : wide_[i];
    }

   private:
    const uint32_t* narrow_;
    const int64_t* wide_;
    int64_t unit_;
  };

  Numbers places_, starts_;
  int64_t each_;
};

template <class Use>
int64_t Cursor::for_each_listed(int64_t max_bytes, Use&& use) {
  const Level& level = bottom();
  Off end;
  const bool listed = !level.strided && level.plain && within_ == 0;
  if (!listed || __builtin_add_overflow(level.origin, level.node->span, &end)) return 0;
  const ListedEntries entries(*level.node);
  const Off origin = level.origin;
  const int64_t first = level.index, count = level.count;
  int64_t i = first, left = max_bytes;
  for (; i < count; ++i) {
    const int64_t length = entries.length(i);
    if (length > left) break;
    use(origin + entries.place(i), length);
    left -= length;
  }
  if (i > first) pass(i - first, max_bytes - left);
  return max_bytes - left;
}

}  // namespace penstock::layout
