// Warm and cold memory and files, a warm disk, a drained file.
#include "regime.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/units.hpp"
#include "page_reports.h"

namespace penstock::measure {
namespace {

// What a run that was to begin right after reports of free pages could not be given.
std::string unheard(bool after_reports) {
  if (!after_reports || ::access(PENSTOCK_REPORTED, R_OK) == 0) return {};
  return "page-reports wait: this kernel does not say when it tells a host of free memory; nothing "
         "was waited for";
}

std::string joined(const std::string& a, const std::string& b) {
  return a.empty() || b.empty() ? a + b : a + "; " + b;
}

}  // namespace

std::string NodeMemory::warm(int64_t node_bytes, int workers_of_node, bool after_reports) {
  const int64_t touched =
      warm_node_memory(node_bytes, workers_of_node, after_reports) * workers_of_node;
  if (touched >= node_bytes * 9 / 10) return unheard(after_reports);
  return joined(
      "regime warm: only " + std::to_string(touched) + " bytes of memory were touched on a node",
      unheard(after_reports));
}

std::string NodeMemory::cool(int64_t warm_bytes, bool after_reports) {
  kept_ = cool_node_memory(warm_bytes, after_reports);
  if (kept_.left_bytes == 0) return unheard(after_reports);
  return joined("regime cold: " + std::to_string(kept_.left_bytes) +
                    " bytes of warm memory are left on a node, and may be given to it",
                unheard(after_reports));
}

Result<void> cool_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return os_error("open", path, errno);
  const int code = ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
  if (code != 0) return os_error("posix_fadvise", path, code);
  return {};
}

Result<void> drain_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return os_error("open", path, errno);
  const int failed = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  if (failed != 0) return os_error("fsync", path, failed);
  return {};
}

Result<void> warm_disk(const std::string& file, int64_t bytes) {
  if (bytes == 0) return {};
  const std::string path = file + ".warm-up." + std::to_string(::getpid());
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return os_error("open", path, errno);
  const std::vector<char> data(size_t(std::min(bytes, kMiB)), 1);
  int failed = 0;
  for (int64_t done = 0; done < bytes && failed == 0;) {
    const ssize_t n = ::write(fd, data.data(), std::min(data.size(), size_t(bytes - done)));
    if (n < 0 && errno != EINTR) failed = errno;
    done += std::max<ssize_t>(n, 0);
  }
  if (failed == 0 && ::fsync(fd) != 0) failed = errno;
  ::close(fd);
  ::unlink(path.c_str());
  if (failed != 0) return os_error("warm up the disk", path, failed);
  return {};
}

}  // namespace penstock::measure
