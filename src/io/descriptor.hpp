// A file descriptor that is closed once, and whose closing can fail: close(2) is the last chance
// of NFS and of quotas to say that bytes were lost.
#pragma once

#include <string>
#include <utility>

#include "base/error.hpp"
#include "io/mechanism.hpp"

namespace penstock::io {

// And no device or pipe, which has no blocks and perhaps no sync.
bool is_regular_file(int fd) noexcept;

class Descriptor {
 public:
  Descriptor(Descriptor&& o) noexcept : fd_(std::exchange(o.fd_, -1)), path_(std::move(o.path_)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor();

  // An existing file, for writing only.
  static Result<Descriptor> open_for_writing(const std::string& path,
                                             Written written = Written::to_cache);
  // For reading only.
  static Result<Descriptor> open_for_reading(const std::string& path);
  // Of the file that `fd` is open on, which was opened as `path` and may have another name by now,
  // or none. Fails where only the name leads to a file, and to another.
  static Result<Descriptor> open_again_for_reading(int fd, const std::string& path);
  // For writing and reading, which a shared mapping needs.
  static Result<Descriptor> open_for_mapping(const std::string& path, Written written);

  int fd() const noexcept { return fd_; }
  const std::string& path() const noexcept { return path_; }

  // Never repeated after an error other than EINTR: the kernel reports a lost page once, and a
  // second fsync would say success.
  Result<void> sync(SyncKind kind);
  // Idempotent; only the first call can fail.
  Result<void> close();

 private:
  Descriptor(int fd, std::string path) noexcept : fd_(fd), path_(std::move(path)) {}
  static Result<Descriptor> open(const std::string& path, int flags);
  static Result<Descriptor> open(const std::string& name, int flags, const std::string& path);

  int fd_;
  std::string path_;
};

}  // namespace penstock::io
