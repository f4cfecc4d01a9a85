// Which bytes of a file page are dirty: one bit per byte, in memory that several processes may mark
// at once. The bits alone decide what is written; counts of newly dirty bytes are a hint, wrong
// where two mark the same bytes at the same time.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <span>

#include "base/extent.hpp"
#include "layout/cursor.hpp"

namespace penstock::exec {

class DirtyMap {
 public:
  using Word = std::atomic<uint64_t>;
  static constexpr int64_t kWordBytes = 64;  // of the file, per word
  static_assert(Word::is_always_lock_free && sizeof(Word) == sizeof(uint64_t));

  // REQUIRES a word for every 64 bytes of the page, none of them for others; and one more, which
  // says in what parts of these bits were set: of a page that is written to in few places no memory
  // is touched for the others.
  DirtyMap(std::span<Word> words, Extent page, Word& touched) noexcept
      : words_(words), page_(page), touched_(touched) {}

  // How many of these bytes were not dirty before. REQUIRES that they lie in the page.
  int64_t mark(Extent e);
  int64_t mark(const layout::Run& run);
  int64_t mark(layout::Cursor& cursor, int64_t n);  // the next n stream bytes; moves the cursor

  // Calls visit(Extent) for the dirty extents, ascending, joined. REQUIRES that nobody marks.
  template <class Visit>
  void for_each_extent(Visit&& visit) const {
    for (Off at = find(0, true); at < page_.size();) {
      const Off end = find(at, false);
      visit(Extent{page_.begin + at, page_.begin + end});
      at = find(end, true);
    }
  }
  void clear();      // REQUIRES that nobody marks
  void clear_all();  // whatever was in this memory before; likewise
  // Where the last dirty byte of the page ends; the page's beginning when there is none.
  Off end() const noexcept;

 private:
  class Marker;
  int part_bits() const noexcept;  // of a word's number, below those of its part's
  Off skip(Off word, Off end, uint64_t like) const;
  Off find_in(Off word, Off word_end, Off from, bool dirty) const;  // or a negative number
  Off find(Off from, bool dirty) const;  // of the page; its size when there is none

  std::span<Word> words_;
  Extent page_;
  Word& touched_;
};

}  // namespace penstock::exec
