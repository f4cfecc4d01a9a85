// Repeats pwrite(2) until everything is in the file, or says what is not.
#include "io/write_fully.hpp"

#include <unistd.h>

#include <cerrno>

#include "base/seeded_fault.hpp"

namespace penstock::io {
namespace {

Fault missing_from(Off offset, const std::string& path, int sys_errno) {
  return {os_error("pwrite", path + ", offset " + std::to_string(offset), sys_errno).value(),
          offset};
}

}  // namespace

std::optional<Fault> write_fully(int fd, std::span<const std::byte> bytes, Off offset,
                                 const std::string& path) {
  // Invariant: everything before `offset` is in the file, and `bytes` is what is left.
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd, bytes.data(), bytes.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    // Zero would repeat for ever; the kernel promises it for no file, so it is a failing device.
    if (n <= 0) return missing_from(offset, path, n < 0 ? errno : EIO);
    if (seeded_fault("short_write_ignored")) return std::nullopt;
    bytes = bytes.subspan(size_t(n));
    offset += n;
  }
  return std::nullopt;
}

}  // namespace penstock::io
