// Crumbs: short extents of a file that lie close to each other, with gaps between them. A write of
// each would cost a system call and the file's lock for some dozens of bytes; read, filled in and
// written back, the gaps could take somebody else's bytes with them. So crumbs are stored into the
// file's own pages, which touches no byte of a gap (docs/decisions/0052-crumbs.md).
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "io/crumb_trail.hpp"
#include "io/descriptor.hpp"
#include "io/in_place.hpp"
#include "io/mechanism.hpp"
#include "io/window.hpp"

namespace penstock::io {

// The extents that a list begins with: those of a stretch of crumbs, or those up to where one may
// begin.
struct Stretch {
  size_t count = 0;
  bool crumbs = false;
};

// REQUIRES some extents, ascending and disjoint.
Stretch first_stretch(std::span<const Extent> extents) noexcept;

// Windows of a file that is otherwise written by calls. Used by several threads at once.
class CrumbWindows {
 public:
  // Of the file that is open as `fd`, which stays open as long as this.
  explicit CrumbWindows(int fd, Written written) noexcept : fd_(fd), written_(written) {}

  // Stores the extents, a stretch of crumbs, which `memory` is asked for then. false: nothing was
  // stored and nothing asked for.
  bool store(std::span<const Extent> crumbs, DirtyBytes& memory);
  // The same of one piece, of a trail that leads through this file.
  bool store_next(CrumbTrail& trail, std::span<const std::byte> bytes, Off offset);

  Result<void> close();
  // Why stretches are not stored, if there were any. Of pieces that come one by one nobody expects
  // anything but calls.
  std::string degraded() const;

 private:
  struct Opened {
    int fd = -1;
    const InPlace* how = nullptr;  // nullptr: nothing is stored
  };

  Window map(Extent where);
  std::byte* make_ready(CrumbTrail& trail, const Opened& file, Off begin, Off size);
  std::byte* make_ready_alone(CrumbTrail& trail, const Opened& file, Extent where);
  bool note(const Refusal& refusal);
  Window missed();
  Opened opened();
  void open();
  void refuse(const std::string& why);

  const int fd_;
  const Written written_;
  std::mutex ready_mutex_;    // one at a time: threads of a process share its range locks
  mutable std::mutex mutex_;  // of what follows
  bool tried_ = false;
  std::optional<Descriptor> mapped_;  // the same file, open for reading too
  const InPlace* how_ = nullptr;
  std::string why_not_;
  bool missed_ = false;  // a stretch
};

}  // namespace penstock::io
