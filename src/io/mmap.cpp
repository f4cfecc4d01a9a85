// Stores into windows of the file that are mapped with mmap(2): who fills a lease fills the file's
// own pages, and nothing is copied again. The contract, with its reasons, is in
// docs/decisions/0019-mmap.md:
// - A window's blocks are reserved (fallocate) and its pages populated (MADV_POPULATE_WRITE) before
//   it is given out, so that no store ends in SIGBUS because the disk is full. What cannot be
//   reserved is written by pwrite(2), which finds the exact first byte that does not fit.
// - The file is as long as what was written: windows lie inside its end, and what grows it is
//   written by pwrite(2) in submit().
// - Bytes that are not dirty are not stored to (io/mechanism.hpp), so they keep their contents.
// - A stored byte is in the file at once, and on the device after fsync(2) of the descriptor.
// - Pages of one file are coherent on one node only: it needs a plan that owns blocks.
// With `window=file` windows are parts of one mapping of the whole file, which stays, and is made
// anew when the file has grown (docs/decisions/0032-registered-whole-file.md).
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "io/buffer_slots.hpp"
#include "io/descriptor.hpp"
#include "io/mechanism.hpp"
#include "io/probe.hpp"
#include "io/window.hpp"
#include "io/write_fully.hpp"

#ifndef FALLOC_FL_UNSHARE_RANGE  // headers of Linux before 4.9
#define FALLOC_FL_UNSHARE_RANGE 0x40
#endif

namespace penstock::io {
namespace {

// Where a store into a page whose block is reserved needs no other block: no copies on write, no
// server. Files of xfs may share blocks with a clone until they are told not to.
struct InPlace {
  std::string_view type;
  int reserve_mode;
};
constexpr std::array kInPlace = {
    InPlace{"ext4", FALLOC_FL_KEEP_SIZE},
    InPlace{"xfs", FALLOC_FL_KEEP_SIZE | FALLOC_FL_UNSHARE_RANGE},
    InPlace{"tmpfs", FALLOC_FL_KEEP_SIZE},
};

const InPlace* in_place(std::string_view type) {
  const auto found = std::ranges::find(kInPlace, type, &InPlace::type);
  return found == kInPlace.end() ? nullptr : &*found;
}

// Of a call that no other window will be granted either.
bool is_for_good(int sys_errno) {
  constexpr std::array kLacking = {EOPNOTSUPP, ENOSYS, EINVAL, ENODEV, EACCES, EPERM};
  return std::ranges::find(kLacking, sys_errno) != kLacking.end();
}

constexpr std::string_view kNotReadable =
    "the file may be written but not read, and a shared mapping needs both; written by pwrite";
constexpr std::string_view kGrows =
    "what lies behind the end of the file cannot be mapped and is written by pwrite; give "
    "the file its size first (MPI_File_preallocate or MPI_File_set_size)";

class MmapFile final : public MechanismFile {
 public:
  MmapFile(Descriptor file, WindowOf window_of) : file_(std::move(file)), window_of_(window_of) {}

  static Result<std::unique_ptr<MechanismFile>> open(const OpenRequest& request) {
    Result<Descriptor> both = Descriptor::open_for_mapping(request.path, request.written);
    if (both) return serving(*std::move(both), request.window, &MmapFile::learn_file_system);
    if (both.error().sys_errno != EACCES) return tl::unexpected(std::move(both).error());
    return Descriptor::open_for_writing(request.path, request.written).map([](Descriptor&& file) {
      return serving(std::move(file), WindowOf::cycle, &MmapFile::learn_not_readable);
    });
  }

  Result<Lease> lease(Extent where) override {
    // A slot's number first: an empty extent takes no memory.
    Result<Lease> lease = slots_.lease({where.begin, where.begin});
    if (!lease) return lease;
    Window& window = windows_[size_t(lease->slot)];
    window = map(where);
    if (window.mapped()) return Lease{where, window.memory(), lease->slot};
    slots_.give_back(lease->slot);
    return slots_.lease(where);
  }

  void submit(Lease lease, std::span<const Extent> dirty) override {
    const Window window = std::exchange(windows_[size_t(lease.slot)], Window());
    if (dirty.empty()) return slots_.give_back(lease.slot);
    slots_.settle(lease.slot, window.mapped() ? std::nullopt : write_all(lease, dirty));
  }

  std::optional<Fault> reap() override { return slots_.reap_settled(); }

  int slots() const noexcept override { return BufferSlots::kSlots; }

  std::optional<Fault> write(std::span<const std::byte> bytes, Off offset) override {
    return write_fully(file_.fd(), bytes, offset, file_.path());
  }

  Result<void> sync(SyncKind kind) override { return file_.sync(kind); }
  // Unmapped before, so that it is the last to hold the file.
  Result<void> close() override {
    whole_.reset();
    return file_.close();
  }
  int fd() const noexcept override { return file_.fd(); }
  std::string degraded() const override { return degraded_; }

 private:
  static std::unique_ptr<MechanismFile> serving(Descriptor file, WindowOf window_of,
                                                void (MmapFile::*learn)()) {
    auto served = std::make_unique<MmapFile>(std::move(file), window_of);
    (served.get()->*learn)();
    return served;
  }

  void learn_not_readable() { say(kNotReadable); }

  void learn_file_system() {
    const Result<FileSystem> found = probe(file_.fd());
    if (!found) return say(found.error().message() + "; written by pwrite");
    how_ = in_place(found->type);
    if (how_ == nullptr)
      say("a store into a page of " + found->type +
          " may find no space, which would be a SIGBUS; written by pwrite");
  }

  // A window of the file, or nothing is mapped.
  Window map(Extent where) {
    if (how_ == nullptr || where.empty()) return {};
    const Off file_bytes = size();
    if (where.end > file_bytes) {
      say(kGrows);
      return {};
    }
    auto window = window_of_ == WindowOf::file ? part_of_whole(where, file_bytes)
                                               : Window::map(file_.fd(), where, how_->reserve_mode);
    if (window) return *std::move(window);
    refused(window.error());
    return {};
  }

  // Windows of an older, shorter mapping keep it until they are submitted.
  tl::expected<Window, Refusal> part_of_whole(Extent where, Off file_bytes) {
    if (whole_ == nullptr || whole_->where().end < where.end) {
      auto mapped = Mapping::make(file_.fd(), {0, file_bytes});
      if (!mapped) return tl::unexpected(mapped.error());
      whole_ = std::make_shared<const Mapping>(*std::move(mapped));
    }
    return Window::within(whole_, file_.fd(), where, how_->reserve_mode);
  }

  Off size() const {
    struct stat file {};
    return ::fstat(file_.fd(), &file) == 0 ? file.st_size : 0;
  }

  void refused(const Refusal& r) {
    const bool for_good = is_for_good(r.sys_errno);
    if (for_good) how_ = nullptr;
    const char* what = for_good ? "no window can be mapped; written by pwrite"
                                : "a window could not be mapped and was written by pwrite";
    say(os_error(r.operation, what, r.sys_errno).value().message());
  }

  void say(std::string_view why) {
    if (degraded_.find(why) != std::string::npos) return;
    if (!degraded_.empty()) degraded_ += "; ";
    degraded_ += why;
  }

  // Of an ordinary buffer. Stops at the first fault: the extents are in file order, so it is the
  // first missing byte.
  std::optional<Fault> write_all(const Lease& lease, std::span<const Extent> dirty) {
    LeaseBytes memory(lease);
    for (const Extent e : dirty)
      if (auto fault = write(memory.of(e), e.begin)) return fault;
    return std::nullopt;
  }

  Descriptor file_;
  const InPlace* how_ = nullptr;  // nullptr: everything by pwrite
  std::string degraded_;
  const WindowOf window_of_;
  std::shared_ptr<const Mapping> whole_;  // nullptr: not mapped yet, or never
  BufferSlots slots_;
  std::array<Window, BufferSlots::kSlots> windows_;
};

}  // namespace

const Mechanism& mmap_mechanism() {
  static const Mechanism m{.name = "mmap",
                           .summary = "fills mapped windows of the file in place",
                           .alignment_bytes = 4096,
                           .writes_file = true,
                           .takes_window = true,
                           .unavailable = nullptr,
                           .open = &MmapFile::open};
  return m;
}

}  // namespace penstock::io
