// Three ways, each with one decision: what to do after the bytes are in the page cache, or how to
// pass it by.
#include "ring_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/units.hpp"
#include "io/write_fully.hpp"

namespace penstock::peers {
namespace {

constexpr int64_t kBlock = 4096;
constexpr int64_t kStreamStep = kMiB;

Error error_of(const char* operation, const std::string& path) {
  return os_error(operation, path, errno).value();
}

std::optional<Error> fully(int fd, std::span<const std::byte> bytes, Off offset,
                           const std::string& path) {
  auto fault = io::write_fully(fd, bytes, offset, path);
  return fault ? std::optional<Error>(std::move(fault->error)) : std::nullopt;
}

}  // namespace

RingFile::~RingFile() { static_cast<void>(close()); }

std::optional<Error> RingFile::open(const std::string& path, WriteMethod method, bool create) {
  path_ = path;
  method_ = method;
  fd_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | (create ? O_CREAT | O_TRUNC : 0), 0666);
  if (fd_ < 0) return error_of("open", path_);
  if (method == WriteMethod::direct) {
    direct_fd_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_DIRECT);
    if (direct_fd_ < 0) return error_of("open with O_DIRECT", path_);
  }
  return std::nullopt;
}

std::optional<Error> RingFile::write(std::span<const std::byte> bytes, Off offset) {
  switch (method_) {
    case WriteMethod::plain:
      return write_buffered(bytes, offset);
    case WriteMethod::stream:
      return write_stream(bytes, offset);
    case WriteMethod::direct:
      return write_direct(bytes, offset);
  }
  return std::nullopt;
}

std::optional<Error> RingFile::write_buffered(std::span<const std::byte> bytes, Off offset) {
  return fully(fd_, bytes, offset, path_);
}

// Whatever goes wrong in write-back is told by the sync, which is why its start may fail unheard.
std::optional<Error> RingFile::write_stream(std::span<const std::byte> bytes, Off offset) {
  while (!bytes.empty()) {
    const auto step = bytes.first(std::min(bytes.size(), size_t(kStreamStep)));
    if (auto error = write_buffered(step, offset)) return error;
    static_cast<void>(::sync_file_range(fd_, offset, int64_t(step.size()), SYNC_FILE_RANGE_WRITE));
    bytes = bytes.subspan(step.size());
    offset += int64_t(step.size());
  }
  return std::nullopt;
}

std::optional<Error> RingFile::write_direct(std::span<const std::byte> bytes, Off offset) {
  const Off end = offset + int64_t(bytes.size());
  const Extent whole{align_up(offset, kBlock), align_down(end, kBlock)};
  if (whole.empty()) return write_buffered(bytes, offset);
  auto middle = bytes.subspan(size_t(whole.begin - offset), size_t(whole.size()));
  if (auto error = write_buffered(bytes.first(size_t(whole.begin - offset)), offset)) return error;
  if (auto error = write_buffered(bytes.subspan(size_t(whole.end - offset)), whole.end))
    return error;
  if (uintptr_t(middle.data()) % kBlock != 0) {
    if (auto ok = bounce_.reserve(middle.size()); !ok) return ok.error();
    std::memcpy(bounce_.data(), middle.data(), middle.size());
    middle = bounce_.first(middle.size());
  }
  return fully(direct_fd_, middle, whole.begin, path_);
}

std::optional<Error> RingFile::sync() {
  return ::fsync(fd_) == 0 ? std::nullopt : std::optional<Error>(error_of("fsync", path_));
}

std::optional<Error> RingFile::close() {
  std::optional<Error> error;
  for (int* fd : {&direct_fd_, &fd_}) {
    if (*fd >= 0 && ::close(*fd) != 0) error = error_of("close", path_);
    *fd = -1;
  }
  return error;
}

}  // namespace penstock::peers
