// What makes a trail, and how far ahead of it pages are ready.
#include "io/crumb_trail.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "base/populate.hpp"

namespace penstock::io {
namespace {

// As for the crumbs of one call (crumbs.cpp); a rank that was on a trail is soon believed to be on
// the next.
constexpr Off kLeastOfATrail = 16, kLeastOfAnother = 3;
constexpr int kTrusted = 4;

constexpr Off kMostReady = 256 * kKiB;
constexpr Off kMostMappedAhead = 32 * kMiB;
constexpr int kLongestPause = 64;
// What nobody has stored to for so long may have left memory: it is made ready anew, by a call that
// can say that it failed.
constexpr double kLongestRest_s = 0.01;
// What was not asked for so long is asked for anew: a file may have been made immutable, or lost
// its blocks to a hole and the disk their room, and a store would be a SIGBUS.
constexpr double kLongestTrust_s = 1e-4;
// Whoever copies what is newer than his copy looks at the modification time.
constexpr double kLongestUntold_s = 1;

std::span<std::byte> pages_around(std::span<std::byte> bytes) {
  const auto at = reinterpret_cast<uintptr_t>(bytes.data());
  const auto before = size_t(at % uintptr_t(memory_page_bytes()));
  return {bytes.data() - before, bytes.size() + before};
}

}  // namespace

bool Trail::is_longer_than(Off crumbs) const noexcept {
  return crumbs_ >= crumbs && all_.size() <= crumbs_ * most_bytes_each_;
}

bool Trail::goes_on(Extent piece) noexcept {
  const Off gap = piece.begin - all_.end;
  if (piece.size() >= kPageStep || gap < 0 || gap >= kPageStep) {
    trusted_ = is_longer_than(kLeastOfATrail) ? kTrusted : std::max(0, trusted_ - 1);
    all_ = {piece.begin, piece.begin};
    crumbs_ = 0;
  }
  all_.end = piece.end;
  ++crumbs_;
  return is_longer_than(trusted_ > 0 ? kLeastOfAnother : kLeastOfATrail);
}

bool CrumbTrail::leads_to(Extent piece) noexcept {
  if (!trail_.goes_on(piece)) return false;
  if (left_ > 0) --left_;
  return left_ == 0;
}

void CrumbTrail::look_away() noexcept {
  pause_ = std::clamp(2 * pause_, 1, kLongestPause);
  left_ = pause_;
}

std::byte* CrumbTrail::place_of(Extent piece) noexcept {
  if (piece.begin < where_.begin || piece.end > where_.end) return nullptr;
  const Ticks now = ticks();
  if (about_seconds(now - used_) > kLongestRest_s) return nullptr;
  const auto place =
      memory_.subspan(size_t(piece.begin - where_.begin), size_t(piece.end - piece.begin));
  if (about_seconds(now - asked_) > kLongestTrust_s) {
    if (populate_for_stores(pages_around(place)) != 0) return nullptr;
    asked_ = now;
    if (about_seconds(now - told_) > kLongestUntold_s) tell_time();
  }
  used_ = now;
  untold_ = true;
  return place.data();
}

// The kernel sets it when a page is made ready, not when one is stored to. Whoever does not own the
// file may set both times only.
void CrumbTrail::tell_time() noexcept {
  if (!std::exchange(untold_, false)) return;
  told_ = ticks();
  const timespec modified[] = {{0, UTIME_OMIT}, {0, UTIME_NOW}};
  if (::futimens(fd_, modified) != 0) (void)::futimens(fd_, nullptr);
}

Off CrumbTrail::ahead(bool takes_room) const noexcept {
  if (takes_room) return std::min(trail_.length(), kMostReady);
  return std::clamp(trail_.length(), kLeastReady, kMostReady);
}

tl::expected<std::byte*, Refusal> CrumbTrail::make_ready(int fd, Extent where, int reserve_mode) {
  tell_time();
  where_ = {};
  fd_ = fd;
  const Extent pages = whole_pages(where);
  if (pages.begin < pages_.where().begin || pages.end > pages_.where().end) {
    pages_ = {};
    auto made = Mapping::make(fd, {pages.begin, capped_sum(pages.begin, kMostMappedAhead)},
                              ReadAhead::none);
    if (!made) return tl::unexpected(made.error());
    pages_ = *std::move(made);
  }
  const auto memory = ready_part(pages_, fd, where, reserve_mode);
  if (!memory) return tl::unexpected(memory.error());
  where_ = where;
  memory_ = *memory;
  used_ = asked_ = told_ = ticks();
  pause_ = 0;
  return memory_.data();
}

void CrumbTrail::let_go() noexcept {
  tell_time();
  where_ = {};
  pages_ = {};
}

}  // namespace penstock::io
