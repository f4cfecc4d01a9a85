// A trail: crumbs that a rank writes one by one, each by a call of its own, on and on through the
// file. Those that lie well inside the file need no write(2): they are stored into the file's own
// pages, which are made ready a little ahead (docs/decisions/0053-trails.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ticks.hpp"
#include "base/units.hpp"
#include "io/window.hpp"

namespace penstock::io {

// Who else writes the file. A page that is made ready costs about as much as two writes that wait
// for the file's lock, or eight that do not (measured: docs/decisions/0053-trails.md).
enum class Writers : uint8_t { one, several };

// Whether a rank is on a trail. Pure.
class Trail {
 public:
  explicit Trail(Writers writers) noexcept
      : most_bytes_each_(kPageStep / (writers == Writers::one ? 8 : 2)) {}

  // Of a piece that is about to be written: whether others like it may be expected behind it.
  bool goes_on(Extent piece) noexcept;
  // Bytes of the file that it has led over.
  Off length() const noexcept { return all_.size(); }

 private:
  bool is_longer_than(Off crumbs) const noexcept;

  const Off most_bytes_each_;  // of the file
  Extent all_;                 // of this trail so far
  Off crumbs_ = 0;             // in it
  int trusted_ = 0;            // short ones that may follow a long one before it is forgotten
};

// What a rank keeps of the file into which it writes crumbs. Of one thread, and of one file.
// Allocates nothing.
class CrumbTrail {
 public:
  static constexpr Off kLeastReady = 32 * kKiB;  // less would not pay

  explicit CrumbTrail(Writers writers) noexcept : trail_(writers) {}

  // Of a piece that is about to be written: whether to look for its place.
  bool leads_to(Extent piece) noexcept;
  // There was none: after more and more pieces only is one looked for again.
  void look_away() noexcept;

  // Where the piece belongs; nullptr: its pages are not ready.
  std::byte* place_of(Extent piece) noexcept;
  // How far ahead pages should be ready: no further than the trail has led, but for a little where
  // that takes no room.
  Off ahead(bool takes_room) const noexcept;
  // Where byte where.begin belongs. REQUIRES that `where` is not empty and lies inside the file,
  // and that `fd` is open for reading and writing.
  tl::expected<std::byte*, Refusal> make_ready(int fd, Extent where, int reserve_mode);
  // Nothing is mapped any more. REQUIRES that `fd` of make_ready() is open.
  void let_go() noexcept;

 private:
  void tell_time() noexcept;

  Trail trail_;
  int pause_ = 0, left_ = 0;  // pieces that no place is looked for: of the last pause, and still
  Mapping pages_;
  Extent where_;                 // of pages_, what is ready
  std::span<std::byte> memory_;  // of where_
  Ticks used_ = 0, asked_ = 0;   // asked_: whether it takes stores
  int fd_ = -1;
  bool untold_ = false;  // stores that the file's modification time does not tell of
  Ticks told_ = 0;
};

}  // namespace penstock::io
