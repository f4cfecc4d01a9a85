#include "comm/shared_segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#ifndef MADV_POPULATE_READ  // glibc before 2.35; the kernel has it from 5.14
#define MADV_POPULATE_READ 22
#endif

namespace penstock::comm {
namespace {

constexpr const char* kDirectory = "/dev/shm/";
constexpr size_t kBlockOfStat = 512;

class Opened {
 public:
  Opened() = default;
  Opened(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
  Opened(Opened&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  ~Opened() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const noexcept { return fd_; }

 private:
  int fd_ = -1;
};

class Mapped final : public SharedSegment {
 public:
  Mapped(std::span<std::byte> memory, Opened file)
      : SharedSegment(memory), file_(std::move(file)) {}
  Mapped(const Mapped&) = delete;
  ~Mapped() override { ::munmap(memory().data(), memory().size()); }

  Result<void> populate(size_t at, size_t bytes) override {
    if (file_.fd() < 0) return {};  // it is there, or comes at first touch
    const int rc = ::posix_fallocate(file_.fd(), off_t(at), off_t(bytes));
    if (rc != 0) return os_error("posix_fallocate", "shared memory", rc);
    return {};
  }

  // Pages of shared memory are writable once they are mapped, even for reading, and those are
  // mapped sixteen at a time.
  void expect_stores(size_t at, size_t bytes) noexcept override {
    if (file_.fd() < 0) return;
    (void)::madvise(memory().data() + at, bytes, MADV_POPULATE_READ);  // older kernels: by faults
  }

  Result<void> clear(size_t at, size_t bytes) override {
    if (file_.fd() < 0) return SharedSegment::clear(at, bytes);
    constexpr int kMode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    if (::fallocate(file_.fd(), kMode, off_t(at), off_t(bytes)) != 0)
      return os_error("fallocate", "shared memory", errno);
    return {};
  }

  size_t populated_bytes() const noexcept override {
    struct stat s {};
    if (file_.fd() < 0 || ::fstat(file_.fd(), &s) != 0) return SharedSegment::populated_bytes();
    return size_t(s.st_blocks) * kBlockOfStat;
  }

 private:
  const Opened file_;
};

std::string path_of(const std::string& name) { return kDirectory + name; }

// The descriptor is kept where memory is still to be taken.
Result<std::shared_ptr<SharedSegment>> map(Opened file, int flags, size_t bytes,
                                           const std::string& what, Room room = Room::now) {
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file.fd(), 0);
  if (at == MAP_FAILED) return os_error("mmap", what, errno);
  return std::make_shared<Mapped>(std::span(static_cast<std::byte*>(at), bytes),
                                  room == Room::when_used ? std::move(file) : Opened());
}

// ftruncate alone would succeed on a full /dev/shm, and the first touch would kill us (SIGBUS).
Result<void> take_room(const Opened& file, size_t bytes, Room room, const std::string& path) {
  if (room == Room::when_used) {
    if (::ftruncate(file.fd(), off_t(bytes)) != 0) return os_error("ftruncate", path, errno);
  } else if (const int rc = ::posix_fallocate(file.fd(), 0, off_t(bytes)); rc != 0) {
    return os_error("posix_fallocate", path, rc);
  }
  return {};
}

}  // namespace

Result<void> SharedSegment::clear(size_t at, size_t bytes) {
  std::memset(memory_.data() + at, 0, bytes);
  return {};
}

Result<std::shared_ptr<SharedSegment>> make_thread_segment(size_t bytes) {
  return map({}, MAP_PRIVATE | MAP_ANONYMOUS, bytes, std::to_string(bytes) + " bytes");
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
    return map(std::move(file), MAP_SHARED, bytes, path, room);
  });
  if (!made) forget_segment_name(name);
  return made;
}

Result<std::shared_ptr<SharedSegment>> open_segment(const std::string& name, size_t bytes,
                                                    Room room) {
  const std::string path = path_of(name);
  Opened file(path, O_RDWR);
  if (file.fd() < 0) return os_error("open", path, errno);
  return map(std::move(file), MAP_SHARED, bytes, path, room);
}

void forget_segment_name(const std::string& name) noexcept { ::unlink(path_of(name).c_str()); }

size_t free_for_segments() noexcept {
  struct statvfs s {};
  if (::statvfs(kDirectory, &s) != 0) return 0;
  return size_t(s.f_bavail) * size_t(s.f_frsize);
}

}  // namespace penstock::comm
