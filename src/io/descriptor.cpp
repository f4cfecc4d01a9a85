// Opening, syncing and closing, each with its errors.
#include "io/descriptor.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/kept_descriptor.hpp"
#include "base/seeded_fault.hpp"
#include "io/probe.hpp"

namespace penstock::io {
namespace {

int flag_of(Written written) { return written == Written::through ? O_DSYNC : 0; }

}  // namespace

bool is_regular_file(int fd) noexcept {
  struct stat file {};
  return ::fstat(fd, &file) == 0 && S_ISREG(file.st_mode);
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Result<Descriptor> Descriptor::open_for_writing(const std::string& path, Written written) {
  return open(path, O_WRONLY | flag_of(written));
}

Result<Descriptor> Descriptor::open_for_reading(const std::string& path) {
  return open(path, O_RDONLY);
}

Result<Descriptor> Descriptor::open_again_for_reading(int fd, const std::string& path) {
  const auto by_name = [&](Error why) -> Result<Descriptor> {
    if (why.sys_errno == ENOENT) return open_for_reading(path);  // there is no /proc
    return tl::unexpected(std::move(why));
  };
  auto again = open("/proc/self/fd/" + std::to_string(fd), O_RDONLY, path).or_else(by_name);
  if (!again) return again;
  const auto known = identify(fd), found = identify(again->fd());
  if (!known || !found || *known != *found)
    return fail(ErrorClass::unsupported, "open for reading",
                "another file has this name by now: " + path);
  return again;
}

Result<Descriptor> Descriptor::open_for_mapping(const std::string& path, Written written) {
  return open(path, O_RDWR | flag_of(written));
}

Result<Descriptor> Descriptor::open(const std::string& path, int flags) {
  return open(path, flags, path);
}

Result<Descriptor> Descriptor::open(const std::string& name, int flags, const std::string& path) {
  int fd;
  do {
    fd = above_standard_streams(::open(name.c_str(), flags | O_CLOEXEC));
  } while (fd < 0 && errno == EINTR);  // on NFS and FUSE a signal can interrupt even open
  if (fd < 0) return os_error("open", path, errno);
  return Descriptor(fd, path);
}

Result<void> Descriptor::sync(SyncKind kind) {
  if (seeded_fault("sync_forgotten")) return {};
  int rc;
  do {
    rc = kind == SyncKind::data ? ::fdatasync(fd_) : ::fsync(fd_);
  } while (rc < 0 && errno == EINTR);
  if (rc < 0) return os_error(kind == SyncKind::data ? "fdatasync" : "fsync", path_, errno);
  return {};
}

Result<void> Descriptor::close() {
  const int fd = std::exchange(fd_, -1);
  if (fd < 0 || ::close(fd) == 0) return {};
  // Linux has released the descriptor even then; closing again could hit another thread's file.
  if (errno == EINTR) return {};
  return os_error("close", path_, errno);
}

}  // namespace penstock::io
