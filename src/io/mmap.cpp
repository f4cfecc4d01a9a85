// Stores into windows of the file that are mapped with mmap(2): who fills a lease fills the file's
// own pages, and nothing is copied again. The contract, with its reasons, is in
// docs/decisions/0019-mmap.md and 0040-mmap-grows-the-file.md:
// - A window's blocks are reserved (fallocate) and its pages populated (MADV_POPULATE_WRITE) before
//   it is given out, so that no store ends in SIGBUS because the disk is full. What cannot be
//   reserved is written by pwrite(2), which finds the exact first byte that does not fit.
// - The file is as long as what was written: leases that lie inside its end are windows, as long as
//   they are filled. What grows it, or lies scattered, is copied into a window by write(), also for
//   submit(), when its bytes are known.
// - Bytes that are not dirty are not stored to (io/mechanism.hpp), so they keep their contents.
// - A stored byte is in the file at once, and on the device after fsync(2) of the descriptor.
// - Pages of one file are coherent on one node only: no two writers may fill one
//   (plan::keeps_pages_apart).
// With `window=BYTES` or `window=file` windows are parts of mappings that stay, and others are made
// for what lies outside of them (docs/decisions/0032-registered-whole-file.md).
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "io/buffer_slots.hpp"
#include "io/descriptor.hpp"
#include "io/in_place.hpp"
#include "io/mechanism.hpp"
#include "io/probe.hpp"
#include "io/range_lock.hpp"
#include "io/window.hpp"
#include "io/write_fully.hpp"

namespace penstock::io {
namespace {

constexpr std::string_view kNotReadable =
    "the file may be written but not read, and a shared mapping needs both; written by pwrite";
constexpr std::string_view kThrough =
    "what is stored into a mapping is in this node's memory alone until a sync, and was to be on "
    "the device; written by pwrite";
// A write of less costs more to map than to copy.
constexpr size_t kLeastMapped = size_t{16} << 10;
// Of the whole file, so that a file that grows is not mapped anew at each write.
constexpr Off kLeastAhead = Off{64} << 20;
constexpr Off kMostDoubled = Off{1} << 45;  // of the 2^47 bytes of a process
// Windows of bytes, so that a writer of several ranks' parts does not map each anew.
constexpr size_t kMostKept = 8;

Off total_bytes(std::span<const Extent> extents) {
  Off bytes = 0;
  for (const Extent e : extents) bytes += e.size();
  return bytes;
}

class MmapFile final : public MechanismFile {
 public:
  MmapFile(Descriptor file, int64_t window_bytes)
      : file_(std::move(file)), window_bytes_(window_bytes) {}

  static Result<std::unique_ptr<MechanismFile>> open(const OpenRequest& request) {
    Result<Descriptor> both = Descriptor::open_for_mapping(request.path, request.written);
    if (both)
      return serving(*std::move(both), request.window_bytes,
                     request.written == Written::through ? &MmapFile::learn_through
                                                         : &MmapFile::learn_file_system);
    if (both.error().sys_errno != EACCES) return tl::unexpected(std::move(both).error());
    return Descriptor::open_for_writing(request.path, request.written).map([](Descriptor&& file) {
      return serving(std::move(file), kWindowOfCycle, &MmapFile::learn_not_readable);
    });
  }

  Result<Lease> lease(Extent where) override {
    // A slot's number first: an empty extent takes no memory.
    Result<Lease> lease = slots_.lease({where.begin, where.begin});
    if (!lease) return lease;
    Window& window = windows_[size_t(lease->slot)];
    if (are_filled() && where.end <= size()) window = map(where);
    if (window.mapped()) return Lease{where, window.memory(), lease->slot};
    slots_.give_back(lease->slot);
    return slots_.lease(where);
  }

  void submit(Lease lease, std::span<const Extent> dirty) override {
    const Window window = std::exchange(windows_[size_t(lease.slot)], Window());
    note_filled(total_bytes(dirty), lease.where.size());
    if (dirty.empty()) return slots_.give_back(lease.slot);
    slots_.settle(lease.slot,
                  window.mapped() ? std::nullopt : write_extents(bytes_of(lease), dirty));
  }

  std::optional<Fault> reap() override { return slots_.reap_settled(); }

  int slots() const noexcept override { return BufferSlots::kSlots; }
  bool stores_in_place() const noexcept override { return true; }

  std::optional<Fault> write(std::span<const std::byte> bytes, Off offset) override {
    if (bytes.size() >= kLeastMapped) {
      const Window window = map({offset, offset + Off(bytes.size())});
      if (window.mapped()) {
        std::memcpy(window.memory().data(), bytes.data(), bytes.size());
        return std::nullopt;
      }
    }
    return write_fully(file_.fd(), bytes, offset, file_.path());
  }

  Result<void> sync(SyncKind kind) override { return file_.sync(kind); }
  // Unmapped before, so that it is the last to hold the file.
  Result<void> close() override {
    {
      const std::lock_guard lock(mutex_);
      kept_.clear();
    }
    return file_.close();
  }
  int fd() const noexcept override { return file_.fd(); }
  std::string degraded() const override {
    const std::lock_guard lock(mutex_);
    return degraded_;
  }

 private:
  static std::unique_ptr<MechanismFile> serving(Descriptor file, int64_t window_bytes,
                                                void (MmapFile::*learn)()) {
    auto served = std::make_unique<MmapFile>(std::move(file), window_bytes);
    (served.get()->*learn)();
    return served;
  }

  void learn_not_readable() { say(kNotReadable); }
  void learn_through() { say(kThrough); }

  void learn_file_system() {
    const Result<FileSystem> found = probe(file_.fd());
    if (!found) return say(found.error().message() + "; written by pwrite");
    if (!is_regular_file(file_.fd())) return say("it is no regular file; written by pwrite");
    how_ = in_place(found->type);
    if (how_ == nullptr)
      say("a store into a page of " + found->type +
          " may find no space, which would be a SIGBUS; written by pwrite");
  }

  // For the better part. Of those that are not, windows would cost pages that nobody stores to.
  bool are_filled() const {
    const std::lock_guard lock(mutex_);
    return 2 * filled_bytes_ >= leased_bytes_;
  }

  void note_filled(Off filled_bytes, Off leased_bytes) {
    const std::lock_guard lock(mutex_);
    filled_bytes_ = filled_bytes_ / 2 + filled_bytes;
    leased_bytes_ = leased_bytes_ / 2 + leased_bytes;
  }

  // A window of the file, or nothing is mapped. Any thread. REQUIRES that it lies inside the end of
  // the file, or that all of it will be written.
  Window map(Extent where) {
    const InPlace* const how = how_;
    if (how == nullptr || where.empty()) return {};
    // Not while somebody writes there past the page cache: its pages are dirty with what the file
    // had.
    const std::lock_guard one(ready_mutex_);
    const RangeLock alone(file_.fd(), where);
    if (!alone.held()) {
      say("a range was another's by a lock of the file and was written by pwrite");
      return {};
    }
    const int grow = where.end > size() ? FALLOC_FL_KEEP_SIZE : 0;
    const int mode = how->reserve_mode & ~grow;
    auto window = window_bytes_ == kWindowOfCycle ? Window::map(file_.fd(), where, mode)
                                                  : part_of_kept(where, mode);
    if (window) return *std::move(window);
    refused(window.error());
    return {};
  }

  tl::expected<Window, Refusal> part_of_kept(Extent where, int mode) {
    const Extent around = to_keep(where);
    if (where.end > around.end) return Window::map(file_.fd(), where, mode);
    auto pages = keep(around, where);
    if (!pages) return tl::unexpected(pages.error());
    return Window::within(*std::move(pages), file_.fd(), where, mode);
  }

  // Windows of a mapping that is no longer kept hold it until they are submitted.
  tl::expected<std::shared_ptr<const Mapping>, Refusal> keep(Extent around, Extent where) {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find_if(kept_, [&](const auto& pages) {
      return pages->where().begin <= where.begin && where.end <= pages->where().end;
    });
    if (found != kept_.end()) return *found;
    auto mapped = Mapping::make(file_.fd(), around);
    if (!mapped) return tl::unexpected(mapped.error());
    if (kept_.size() == (window_bytes_ == kWindowOfFile ? 1 : kMostKept))
      kept_.erase(kept_.begin());
    return kept_.emplace_back(std::make_shared<const Mapping>(*std::move(mapped)));
  }

  // What is mapped for the sake of `where`, and stays. It may end behind the file.
  Extent to_keep(Extent where) const noexcept {
    if (window_bytes_ == kWindowOfFile) return {0, align_up(ahead_of(where.end), kPageStep)};
    const Off begin = align_down(where.begin, window_bytes_);
    return {begin, capped_sum(begin, window_bytes_)};
  }

  static Off ahead_of(Off end) noexcept {
    return end > kMostDoubled ? end : std::max(kLeastAhead, 2 * end);
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
    const std::lock_guard lock(mutex_);
    if (degraded_.find(why) != std::string::npos) return;
    if (!degraded_.empty()) degraded_ += "; ";
    degraded_ += why;
  }

  Descriptor file_;
  std::atomic<const InPlace*> how_ = nullptr;  // nullptr: everything by pwrite
  const int64_t window_bytes_;
  std::mutex ready_mutex_;                            // threads share the file's range locks
  mutable std::mutex mutex_;                          // of what follows, up to the slots
  std::vector<std::shared_ptr<const Mapping>> kept_;  // the oldest first
  std::string degraded_;
  // Of the last leases, each counting half as much as the one after it.
  Off leased_bytes_ = 0, filled_bytes_ = 0;
  BufferSlots slots_;
  std::array<Window, BufferSlots::kSlots> windows_;
};

}  // namespace

const Mechanism& mmap_mechanism() {
  static const Mechanism m{.name = "mmap",
                           .summary = "fills mapped windows of the file in place",
                           .alignment_bytes = kPageStep,
                           .writes_file = true,
                           .takes_window = true,
                           .unavailable = nullptr,
                           .open = &MmapFile::open};
  return m;
}

}  // namespace penstock::io
