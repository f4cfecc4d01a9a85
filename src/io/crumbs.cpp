// What is worth a window, and the windows.
#include "io/crumbs.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/populate.hpp"
#include "base/seeded_fault.hpp"
#include "base/units.hpp"
#include "io/probe.hpp"
#include "io/range_lock.hpp"
#include "io/touching.hpp"

namespace penstock::io {
namespace {

// A page of memory that is faulted in costs about as much as two writes, and a window as much as a
// dozen (measured: docs/decisions/0052-crumbs.md).
constexpr size_t kLeastPerPage = 2;
constexpr size_t kLeastCrumbs = 16;
// Of one window: pages that are faulted in by one call, before any is stored to.
constexpr Off kMostMapped = 4 * kMiB;

size_t pages_of(Extent where) {
  return size_t(divide_up(where.end, kPageStep) - where.begin / kPageStep);
}

Extent hull(std::span<const Extent> extents) { return {extents.front().begin, extents.back().end}; }

// By the call that costs least; the descriptor's position is nobody's.
Off size_of(int fd) { return std::max<Off>(0, ::lseek(fd, 0, SEEK_END)); }

// Some of its blocks are missing.
bool has_holes(int fd) {
  struct stat file {};
  return ::fstat(fd, &file) != 0 || Off(file.st_blocks) * 512 < Off(file.st_size);
}

// What is on the device comes by few large reads. Of a page that is faulted in the kernel would
// read as much again around it, and clear what is none yet.
void fetch(int fd, Extent where) {
  if (!where.empty()) ::posix_fadvise(fd, where.begin, where.size(), POSIX_FADV_WILLNEED);
}

}  // namespace

Stretch first_stretch(std::span<const Extent> extents) noexcept {
  size_t runs = 0, end = 0, count = 0;
  Extent all{extents.front().begin, extents.front().begin};
  // Invariant: the extents before `end` are `runs` short ones near each other, and make `all`.
  while (end < extents.size()) {
    const Extent run = first_run(extents.subspan(end), count);
    const bool near = run.begin - all.end < kPageStep && run.end - all.begin <= kMostMapped;
    if (run.size() >= kPageStep || !near) break;
    all.end = run.end;
    end += count;
    ++runs;
  }
  if (runs >= kLeastCrumbs && runs >= kLeastPerPage * pages_of(all)) return {end, true};
  return {end > 0 ? end : count, false};
}

bool CrumbWindows::store(std::span<const Extent> crumbs, DirtyBytes& memory) {
  const Extent where = hull(crumbs);
  const Window window = map(where);
  if (!window.mapped()) return false;
  const std::span<std::byte> pages = window.memory();
  for (const Extent e : crumbs) {
    const std::span<const std::byte> bytes = memory.of(e);
    if (seeded_fault("crumb_forgotten") && e.begin == where.begin) continue;
    std::memcpy(pages.data() + (e.begin - where.begin), bytes.data(), bytes.size());
  }
  return true;
}

// The file grows to the end of `where`, which is a byte that will be stored, and no further. What
// finds no room now is left to write(2), which knows the first byte that has none.
Window CrumbWindows::map(Extent where) {
  const Opened file = opened();
  if (file.how == nullptr) return missed();
  const Off size = size_of(file.fd);
  fetch(file.fd, {where.begin, std::min(where.end, size)});
  const int grow = where.end > size ? FALLOC_FL_KEEP_SIZE : 0;
  auto window = Window::map(file.fd, where, file.how->reserve_mode & ~grow, ReadAhead::none);
  if (window) return *std::move(window);
  return note(window.error()) ? missed() : Window();
}

Window CrumbWindows::missed() {
  const std::lock_guard lock(mutex_);
  missed_ = true;
  return {};
}

// The file grows by write(2) alone; and whoever has cut it short is found out before the store.
bool CrumbWindows::store_next(CrumbTrail& trail, std::span<const std::byte> bytes, Off offset) {
  const Extent piece{offset, offset + Off(bytes.size())};
  if (!trail.leads_to(piece)) return false;
  const Opened file = opened();
  if (file.how == nullptr) return false;
  const Off size = size_of(file.fd);
  std::byte* place = piece.end <= size ? trail.place_of(piece) : nullptr;
  if (place == nullptr) place = make_ready(trail, file, piece.begin, size);
  if (place == nullptr) return false;
  if (!seeded_fault("trail_forgotten")) std::memcpy(place, bytes.data(), bytes.size());
  return true;
}

// From `begin` on; nullptr: what there is of the file would not pay, or there is no room.
std::byte* CrumbWindows::make_ready(CrumbTrail& trail, const Opened& file, Off begin, Off size) {
  const Extent where{begin, std::min(capped_sum(begin, trail.ahead(has_holes(file.fd))), size)};
  std::byte* const place =
      where.size() >= CrumbTrail::kLeastReady ? make_ready_alone(trail, file, where) : nullptr;
  if (place == nullptr) trail.look_away();
  return place;
}

// Pages that are ready are written back with what the file had, whether they are stored to or not:
// not while somebody writes there past the page cache.
std::byte* CrumbWindows::make_ready_alone(CrumbTrail& trail, const Opened& file, Extent where) {
  const std::lock_guard one(ready_mutex_);
  const RangeLock alone(file.fd, where);
  if (!alone.held()) return nullptr;
  fetch(file.fd, where);
  const auto place = trail.make_ready(file.fd, where, file.how->reserve_mode);
  if (place) return *place;
  (void)note(place.error());
  return nullptr;
}

// Whether nothing will be stored any more.
bool CrumbWindows::note(const Refusal& refusal) {
  if (!is_for_good(refusal.sys_errno)) return false;
  const std::lock_guard lock(mutex_);
  refuse(os_error(refusal.operation, "", refusal.sys_errno).value().message());
  return true;
}

CrumbWindows::Opened CrumbWindows::opened() {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(tried_, true)) open();
  return {mapped_ ? mapped_->fd() : -1, how_};
}

// By its number, since the path may lead elsewhere by now.
void CrumbWindows::open() {
  if (written_ == Written::through) return refuse("each write is to be on the device");
  const Result<FileSystem> found = probe(fd_);
  if (!found) return refuse(found.error().message());
  if (!is_regular_file(fd_)) return refuse("it is no regular file");
  how_ = in_place(found->type);
  if (how_ == nullptr)
    return refuse("a store into a page of " + found->type + " may find no space");
  // A page that is stored to takes room for all of its blocks, a write only for its own.
  if (found->allocation_bytes > 0 && found->allocation_bytes < memory_page_bytes())
    return refuse("its blocks are smaller than a page of memory");
  auto both = Descriptor::open_for_mapping("/proc/self/fd/" + std::to_string(fd_), written_);
  if (!both) return refuse(both.error().message());
  mapped_.emplace(*std::move(both));
}

void CrumbWindows::refuse(const std::string& why) {
  how_ = nullptr;
  why_not_ = why;
}

Result<void> CrumbWindows::close() {
  const std::lock_guard lock(mutex_);
  return mapped_ ? mapped_->close() : Result<void>();
}

std::string CrumbWindows::degraded() const {
  const std::lock_guard lock(mutex_);
  if (!missed_) return {};
  return "short pieces with gaps between them, each by a write of its own: " + why_not_;
}

}  // namespace penstock::io
