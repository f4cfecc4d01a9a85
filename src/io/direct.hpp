// Writing past the page cache, open(2)'s O_DIRECT: the whole units of an extent by a second
// descriptor, its ends by the ordinary one. The contract, and what happens where a file system
// refuses, is docs/decisions/0018-direct-io.md.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "io/block_reserve.hpp"
#include "io/descriptor.hpp"
#include "io/mechanism.hpp"

namespace penstock::io {

enum class Way : uint8_t { buffered, direct };  // through the page cache, past it

struct Part {
  Extent where;
  Way way = Way::buffered;
};

// Head, whole units, tail, in file order; some may be empty. All of it is one buffered part when it
// has no whole unit, or the unit is 0.
std::array<Part, 3> cut_for_direct(Extent e, int64_t unit_bytes) noexcept;

// What a file system asks of direct writes, as far as it tells (statx(2), STATX_DIOALIGN).
struct DirectLimits {
  int64_t memory_bytes = 0;  // addresses are multiples of this
  int64_t offset_bytes = 0;  // and offsets and lengths of this; 0: it takes no direct writes
};
DirectLimits direct_limits(int fd);

// A file that is written both ways. Without OpenRequest::direct, or where it is refused, all writes
// are buffered. write(), reserve() and degraded() may be called by several threads at once, what
// else it has only by the one that uses the mechanism's file.
class DirectFile {
 public:
  static Result<std::unique_ptr<DirectFile>> open(const OpenRequest& request);
  ~DirectFile();

  int fd() const noexcept { return buffered_.fd(); }
  const std::string& path() const noexcept { return buffered_.path(); }
  int fd(Way way) const noexcept { return way == Way::direct ? direct_fd_ : buffered_.fd(); }
  // Where parts are cut; 0 as long as all writes are buffered.
  int64_t unit_bytes() const noexcept { return unit_bytes_; }
  // How far behind an aligned address the memory of a lease must begin.
  size_t memory_shift(Off begin) const noexcept;

  // Complete on return. A part that cannot be written directly is written the other way.
  // REQUIRES for Way::direct: the bytes are of a part that cut_for_direct() made.
  std::optional<Fault> write(std::span<const std::byte> bytes, Off offset, Way way);

  // All of `where` will be written. What write() is given with Way::buffered it reserves itself.
  void reserve(Extent where) noexcept {
    if (unit_bytes_ == 0) blocks_.before_writing(fd(), where);
  }

  Result<void> sync(SyncKind kind) { return buffered_.sync(kind); }
  Result<void> close();  // idempotent
  std::string degraded() const;

 private:
  explicit DirectFile(Descriptor buffered) : buffered_(std::move(buffered)) {}
  void open_direct();
  std::optional<Fault> write_buffered(std::span<const std::byte> bytes, Off offset);
  void refuse(const std::string& why);

  Descriptor buffered_;
  BlockReserve blocks_;
  int direct_fd_ = -1;  // kept open to the end: writes may be under way
  // 0: buffered. Other threads look at it while one writes; it only ever becomes 0.
  std::atomic<int64_t> unit_bytes_ = 0;
  mutable std::mutex degraded_mutex_;
  std::string degraded_;  // the first refusal
};

}  // namespace penstock::io
