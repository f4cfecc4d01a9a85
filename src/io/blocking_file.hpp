// The file of mechanisms that fill ordinary memory and write all of a lease inside submit(). What
// is left to them is the system call: write(). Crumbs need none (io/crumbs.hpp).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "io/buffer_slots.hpp"
#include "io/crumbs.hpp"
#include "io/direct.hpp"
#include "io/mechanism.hpp"
#include "io/touching.hpp"

namespace penstock::io {

class BlockingFile : public MechanismFile {
 public:
  BlockingFile(std::unique_ptr<DirectFile> file, Written written)
      : file_(std::move(file)), crumbs_(file_->fd(), written) {}

  // `File` is the mechanism's own, derived from this one.
  template <class File>
  static Result<std::unique_ptr<MechanismFile>> open(const OpenRequest& request) {
    return DirectFile::open(request).map([&](std::unique_ptr<DirectFile>&& file) {
      return std::unique_ptr<MechanismFile>(
          std::make_unique<File>(std::move(file), request.written));
    });
  }

  Result<Lease> lease(Extent where) final {
    return slots_.lease(where, file_->memory_shift(where.begin));
  }
  void submit(Lease lease, std::span<const Extent> dirty) final {
    if (dirty.empty()) return slots_.give_back(lease.slot);
    slots_.settle(lease.slot, write_stretches(bytes_of(lease), dirty, file_->unit_bytes()));
  }
  std::optional<Fault> reap() final { return slots_.reap_settled(); }
  int slots() const noexcept final { return BufferSlots::kSlots; }
  Result<void> use_memory(std::span<const std::span<std::byte>> buffers) final {
    return slots_.use_memory(buffers);
  }

  // Memory that is no lease's does not agree with the file's offsets, as O_DIRECT asks for.
  std::optional<Fault> write_extents(const FileBytes& bytes, std::span<const Extent> dirty) final {
    return write_stretches(bytes, dirty, 0);
  }

  // A page that is ready and not stored to must not lie over what goes past the page cache.
  bool store_next(CrumbTrail& trail, std::span<const std::byte> bytes, Off offset) final {
    return file_->unit_bytes() == 0 && crumbs_.store_next(trail, bytes, offset);
  }

  int64_t wanted_bytes() const noexcept final { return file_->wanted_bytes(); }
  void reserve(Extent where) final { file_->reserve(where); }
  Result<void> sync(SyncKind kind) final { return file_->sync(kind); }
  Result<void> close() final {
    Result<void> first = crumbs_.close();
    Result<void> second = file_->close();
    return first ? second : first;
  }
  int64_t cold_bytes() const noexcept final { return file_->cold_bytes(); }
  int fd() const noexcept final { return file_->fd(); }
  std::string degraded() const final {
    const std::string whole = file_->degraded(), crumbs = crumbs_.degraded();
    return whole + (whole.empty() || crumbs.empty() ? "" : "; ") + crumbs;
  }

 protected:
  DirectFile& file() noexcept { return *file_; }
  const DirectFile& file() const noexcept { return *file_; }

 private:
  // Stops at the first fault: the extents are in file order, so it is the first missing byte.
  // Whole units of `unit_bytes` go past the page cache; 0: nothing does.
  std::optional<Fault> write_stretches(const FileBytes& bytes, std::span<const Extent> dirty,
                                       int64_t unit_bytes) {
    DirtyBytes memory(bytes);
    std::optional<Fault> fault;
    while (!fault && !dirty.empty()) {
      const auto [count, are_crumbs] = first_stretch(dirty);
      const std::span<const Extent> stretch = dirty.first(count);
      if (!are_crumbs || !crumbs_.store(stretch, memory))
        fault = write_runs(memory, stretch, unit_bytes);
      dirty = dirty.subspan(count);
    }
    return fault;
  }

  std::optional<Fault> write_runs(DirtyBytes& memory, std::span<const Extent> extents,
                                  int64_t unit_bytes) {
    std::optional<Fault> fault;
    join_touching(extents, [&](Extent run) {
      if (!fault) fault = write_run(memory.of(run), run, unit_bytes);
    });
    return fault;
  }

  std::optional<Fault> write_run(std::span<const std::byte> bytes, Extent run, int64_t unit_bytes) {
    for (const auto& [where, way] : cut_for_direct(run, unit_bytes)) {
      if (where.empty()) continue;
      const std::span<const std::byte> part = part_of(bytes, run, where);
      auto fault =
          way == Way::direct ? file_->write(part, where.begin, way) : write(part, where.begin);
      if (fault) return fault;
    }
    return std::nullopt;
  }

  std::unique_ptr<DirectFile> file_;
  CrumbWindows crumbs_;
  BufferSlots slots_;
};

}  // namespace penstock::io
