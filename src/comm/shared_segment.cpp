#include "comm/shared_segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/despite_signals.hpp"
#include "base/extent.hpp"
#include "base/file_limit.hpp"
#include "base/kept_descriptor.hpp"
#include "base/populate.hpp"
#include "base/units.hpp"

namespace penstock::comm {
namespace {

constexpr const char* kDirectory = "/dev/shm/";

class Opened {
 public:
  Opened() = default;
  Opened(const std::string& path, int flags)
      : fd_(above_standard_streams(::open(path.c_str(), flags | O_CLOEXEC, 0600))) {}
  Opened(Opened&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  Opened& operator=(Opened&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  ~Opened() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const noexcept { return fd_; }

 private:
  int fd_ = -1;
};

Result<void> refused(const char* operation, int error) {
  return os_error(operation, "shared memory", error);
}

class Mapped final : public SharedSegment {
 public:
  explicit Mapped(std::span<std::byte> memory) : SharedSegment(memory) {}
  Mapped(const Mapped&) = delete;
  ~Mapped() override { ::munmap(memory().data(), memory().size()); }
};

// An errno; 0: it is there.
int allocate(const Opened& file, size_t at, size_t bytes) {
  if (Off(at + bytes) > largest_file()) return EFBIG;
  return take_despite_signals(Extent::of(Off(at), Off(bytes)), [&](Extent e) {
    return ::posix_fallocate(file.fd(), e.begin, e.size());
  });
}

// A page in front of what its users see, for all processes that share it.
struct Head {
  std::atomic<size_t> populated_end;
  std::atomic<size_t> whole_end;  // up to here nothing is missing
};
static_assert(std::atomic<size_t>::is_always_lock_free);
constexpr size_t kHeadBytes = 4096;

// Room::when_used. While it rests, and from then on, it has its mapping alone.
class Growing final : public SharedSegment {
 public:
  Growing(std::byte* begin, size_t bytes, Opened file)
      : SharedSegment({begin + kHeadBytes, bytes}), begin_(begin), file_(std::move(file)) {}
  Growing(const Growing&) = delete;
  ~Growing() override { ::munmap(begin_, kHeadBytes + memory().size()); }

  Result<void> populate(size_t at, size_t bytes) override {
    raise(head().populated_end, at + bytes);
    const Result<void> taken = take(at, bytes);
    const auto end = size_t(align_up(int64_t(at + bytes), kPageStep));
    if (taken && at <= head().whole_end.load(std::memory_order_relaxed))
      raise(head().whole_end, std::min(end, memory().size()));
    return taken;
  }

  // Pages of shared memory are writable once they are mapped, even for reading, and those are
  // mapped sixteen at a time.
  void expect_stores(size_t at, size_t bytes) noexcept override {
    map_populated(memory().subspan(at, bytes));  // older kernels: by faults
  }

  // Where nothing is missing by stores: to give memory back and to take it again interrupts all
  // cores that have it mapped.
  Result<void> clear(size_t at, size_t bytes) override {
    const size_t whole_end = head().whole_end.load(std::memory_order_relaxed);
    const size_t whole = std::min(bytes, whole_end - std::min(at, whole_end));
    std::memset(memory().data() + at, 0, whole);
    if (whole == bytes) return {};
    if (::madvise(memory().data() + at + whole, bytes - whole, MADV_REMOVE) == 0) return {};
    return refused("madvise", errno);
  }

  size_t populated_bytes() const noexcept override {
    return head().populated_end.load(std::memory_order_relaxed);
  }

  bool rest() noexcept override {
    if (!populate_mapping(0, 1)) return false;
    file_ = Opened();
    return true;
  }

 private:
  Head& head() const noexcept { return *reinterpret_cast<Head*>(begin_); }

  static void raise(std::atomic<size_t>& most, size_t end) noexcept {
    size_t seen = most.load(std::memory_order_relaxed);
    while (seen < end && !most.compare_exchange_weak(seen, end, std::memory_order_relaxed))
      continue;
  }

  Result<void> take(size_t at, size_t bytes) {
    if (file_.fd() < 0) return populate_mapping(at, bytes);
    const int rc = allocate(file_, kHeadBytes + at, bytes);
    return rc == 0 ? Result<void>() : refused("posix_fallocate", rc);
  }

  // The kernel says EFAULT where a store would have killed us (SIGBUS).
  Result<void> populate_mapping(size_t at, size_t bytes) {
    const int error = populate_for_stores(memory().subspan(at, bytes));
    return error == 0 ? Result<void>() : refused("madvise", error == EFAULT ? ENOSPC : error);
  }

  std::byte* const begin_;
  Opened file_;
};

std::string path_of(const std::string& name) { return kDirectory + name; }

Result<std::byte*> map(const Opened& file, int flags, size_t bytes, const std::string& what) {
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file.fd(), 0);
  if (at == MAP_FAILED) return os_error("mmap", what, errno);
  return static_cast<std::byte*>(at);
}

// The descriptor is kept where memory is still to be taken.
Result<std::shared_ptr<SharedSegment>> map_segment(Opened file, size_t bytes, Room room,
                                                   const std::string& path) {
  using Made = std::shared_ptr<SharedSegment>;
  if (room == Room::now)
    return map(file, MAP_SHARED, bytes, path).map([&](std::byte* at) -> Made {
      return std::make_shared<Mapped>(std::span(at, bytes));
    });
  return map(file, MAP_SHARED, kHeadBytes + bytes, path).map([&](std::byte* at) -> Made {
    return std::make_shared<Growing>(at, bytes, std::move(file));
  });
}

// ftruncate alone would succeed on a full /dev/shm, and the first touch would kill us (SIGBUS).
Result<void> take_room(const Opened& file, size_t bytes, Room room, const std::string& path) {
  if (room == Room::when_used) {
    if (Off(kHeadBytes + bytes) > largest_file()) return os_error("ftruncate", path, EFBIG);
    if (::ftruncate(file.fd(), off_t(kHeadBytes + bytes)) != 0)
      return os_error("ftruncate", path, errno);
    bytes = kHeadBytes;
  }
  const int rc = allocate(file, 0, bytes);
  return rc == 0 ? Result<void>() : os_error("posix_fallocate", path, rc);
}

}  // namespace

Result<void> SharedSegment::clear(size_t at, size_t bytes) {
  std::memset(memory_.data() + at, 0, bytes);
  return {};
}

Result<std::shared_ptr<SharedSegment>> make_thread_segment(size_t bytes) {
  return map({}, MAP_PRIVATE | MAP_ANONYMOUS, bytes, std::to_string(bytes) + " bytes")
      .map([bytes](std::byte* at) -> std::shared_ptr<SharedSegment> {
        return std::make_shared<Mapped>(std::span(at, bytes));
      });
}

std::string unused_segment_name(std::string_view what) {
  static std::atomic<int> count = 0;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);  // a process number comes back, a moment does not
  std::string name = "penstock-" + std::string(what);
  for (const int64_t part : {int64_t{::getuid()}, int64_t{::getpid()}, int64_t{now.tv_sec},
                             int64_t{now.tv_nsec}, int64_t{count++}})
    name += "-" + std::to_string(part);
  return name;
}

Result<std::shared_ptr<SharedSegment>> make_segment(const std::string& name, size_t bytes,
                                                    Room room) {
  const std::string path = path_of(name);
  Opened file(path, O_RDWR | O_CREAT | O_EXCL);
  if (file.fd() < 0) return os_error("open", path, errno);
  auto made = take_room(file, bytes, room, path).and_then([&] {
    return map_segment(std::move(file), bytes, room, path);
  });
  if (!made) forget_segment_name(name);
  return made;
}

Result<std::shared_ptr<SharedSegment>> open_segment(const std::string& name, size_t bytes,
                                                    Room room) {
  const std::string path = path_of(name);
  Opened file(path, O_RDWR);
  if (file.fd() < 0) return os_error("open", path, errno);
  return map_segment(std::move(file), bytes, room, path);
}

void forget_segment_name(const std::string& name) noexcept { ::unlink(path_of(name).c_str()); }

size_t free_for_segments() noexcept {
  struct statvfs s {};
  if (::statvfs(kDirectory, &s) != 0) return 0;
  return size_t(s.f_bavail) * size_t(s.f_frsize);
}

}  // namespace penstock::comm
