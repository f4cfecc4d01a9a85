// Write beside the target, then rename(2) over it.
#include "engine/replace_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <span>

#include "base/file_limit.hpp"
#include "io/write_fully.hpp"

namespace penstock::engine {
namespace {

// A descriptor that is only ever closed to give it back.
class Handle {
 public:
  explicit Handle(int fd) noexcept : fd_(fd) {}
  Handle(const Handle&) = delete;
  ~Handle() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const noexcept { return fd_; }

 private:
  int fd_;
};

// Unlike any other process's, and unlike one that a killed process left.
std::string temporary_name(const std::string& name) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  char suffix[64];
  std::snprintf(suffix, sizeof suffix, ".%ld.%09ld.tmp", long(getpid()), long(now.tv_nsec));
  return "." + name + suffix;
}

Result<void> write_new(int directory, const std::string& name, std::string_view text) {
  if (Off(text.size()) > largest_file()) return os_error("write", name, EFBIG);  // not by a signal
  const int fd =
      ::openat(directory, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return os_error("open", name, errno);
  const auto fault = io::write_fully(fd, std::as_bytes(std::span(text)), 0, name);
  const int close_errno = ::close(fd) == 0 || errno == EINTR ? 0 : errno;
  if (fault) return tl::unexpected(fault->error);
  if (close_errno != 0) return os_error("close", name, close_errno);
  return {};
}

Result<void> write_beside_and_rename(int directory, const std::string& name,
                                     std::string_view text) {
  const std::string temporary = temporary_name(name);
  Result<void> done = write_new(directory, temporary, text);
  // rename(2) acts on the name itself, so a link at the target is replaced.
  if (done && ::renameat(directory, temporary.c_str(), directory, name.c_str()) != 0)
    done = os_error("rename", name, errno);
  if (!done) ::unlinkat(directory, temporary.c_str(), 0);
  return done;
}

}  // namespace

// The outermost first.
Result<void> make_directories(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string prefix = path.substr(0, end);
    if (::mkdir(prefix.c_str(), 0700) != 0 && errno != EEXIST) {
      // A read-only or forbidden parent is no obstacle when the child is there.
      const int why = errno;
      struct stat there {};
      if (::stat(prefix.c_str(), &there) != 0) return os_error("mkdir", prefix, why);
    }
    if (end == std::string::npos) return {};
  }
}

Result<void> replace_file(const std::string& directory, const std::string& name,
                          std::string_view text) {
  const Handle opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.get() < 0) return os_error("open", directory, errno);
  return write_beside_and_rename(opened.get(), name, text).map_error([&](Error e) {
    e.detail = directory + "/" + e.detail;
    return e;
  });
}

}  // namespace penstock::engine
