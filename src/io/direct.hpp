// Writing past the page cache: the whole units of an extent by a second descriptor, its ends by the
// ordinary one (docs/decisions/0018-direct-io.md), always or while memory is cold.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "io/block_reserve.hpp"
#include "io/cold_writer.hpp"
#include "io/descriptor.hpp"
#include "io/direct_descriptor.hpp"
#include "io/mechanism.hpp"

namespace penstock::io {

// A file that is written both ways. Without Direct::always, or where that is refused, all writes
// are buffered; what is written so while memory is cold may go past the page cache all the same.
// write(), reserve() and degraded() may be called by several threads at once, what else it has only
// by the one that uses the mechanism's file.
class DirectFile {
 public:
  static Result<std::unique_ptr<DirectFile>> open(const OpenRequest& request);

  int fd() const noexcept { return buffered_.fd(); }
  const std::string& path() const noexcept { return buffered_.path(); }
  int fd(Way way) const noexcept { return way == Way::direct ? direct_->fd() : buffered_.fd(); }
  // Where parts are cut; 0 as long as all writes are buffered.
  int64_t unit_bytes() const noexcept { return unit_bytes_; }
  // How far behind an aligned address the memory of a lease must begin.
  size_t memory_shift(Off begin) const noexcept;

  // Complete on return. A part that cannot be written directly is written the other way.
  // REQUIRES for Way::direct: the bytes are of a part that cut_for_direct() made.
  std::optional<Fault> write(std::span<const std::byte> bytes, Off offset, Way way);

  // All of `where` will be written. What write() is given with Way::buffered it reserves itself.
  void reserve(Extent where) noexcept {
    if (unit_bytes_ == 0) reserve_for_cache(where);
  }

  Result<void> sync(SyncKind kind) { return buffered_.sync(kind); }
  Result<void> close();  // idempotent
  std::string degraded() const;
  // As a mechanism's file.
  int64_t wanted_bytes() const noexcept { return cold_ ? cold_->wanted_bytes() : 0; }
  int64_t cold_bytes() const noexcept { return cold_ ? cold_->cold_bytes() : 0; }

 private:
  explicit DirectFile(Descriptor buffered) : buffered_(std::move(buffered)) {}
  void open_direct();
  std::optional<Fault> write_buffered(std::span<const std::byte> bytes, Off offset);
  void refuse(const std::string& why);
  void reserve_for_cache(Extent where) noexcept {
    if (!cold_ || !cold_->goes_past(where.size())) blocks_.before_writing(fd(), where);
  }

  Descriptor buffered_;
  BlockReserve blocks_;
  std::unique_ptr<DirectDescriptor> direct_;  // kept open to the end: writes may be under way
  std::unique_ptr<ColdWriter> cold_;
  // 0: buffered. Other threads look at it while one writes; it only ever becomes 0.
  std::atomic<int64_t> unit_bytes_ = 0;
  mutable std::mutex degraded_mutex_;
  std::string degraded_;  // the first refusal
};

}  // namespace penstock::io
