// Warm and cold memory, a warm disk.
#include "regime.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <thread>
#include <vector>

#include "base/units.hpp"

namespace penstock::measure {
namespace {

int64_t available_bytes() {
  std::ifstream text("/proc/meminfo");
  std::string key, unit;
  for (int64_t value = 0; text >> key >> value;) {
    if (key == "MemAvailable:") return value * kKiB;
    std::getline(text, unit);
  }
  return kGiB;
}

}  // namespace

int64_t warm_memory(int64_t node_bytes, int workers_of_node) {
  if (node_bytes == 0) return 0;
  constexpr int64_t kHuge = 2 * kMiB;
  const int64_t node = std::min(node_bytes, available_bytes() / 2);
  const int64_t bytes = std::max(kHuge, node / workers_of_node / kHuge * kHuge);
  void* memory =
      ::mmap(nullptr, size_t(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 0;
  ::madvise(memory, size_t(bytes), MADV_HUGEPAGE);
  constexpr int64_t kPage = 4096;
  for (int64_t at = 0; at < bytes; at += kPage) static_cast<volatile char*>(memory)[at] = 1;
  ::munmap(memory, size_t(bytes));
  return bytes;
}

void cool_memory() {
  using namespace std::chrono_literals;
  std::this_thread::sleep_for(4s);
}

Result<void> cool_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return os_error("open", path, errno);
  const int code = ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
  if (code != 0) return os_error("posix_fadvise", path, code);
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
