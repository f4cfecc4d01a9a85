// Reading a file's bytes back, through a descriptor of its own that can only read: the way into the
// file is a mechanism's (io/mechanism.hpp), and many of them could not read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/error.hpp"
#include "base/extent.hpp"

namespace penstock::io {

// The first `bytes` bytes were read. Fewer than asked for without an error: the file ends there.
struct Readout {
  int64_t bytes = 0;
  std::optional<Error> error;
};

// May be used by several threads at once.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;

  // What the file holds from `offset` on. What lies in `into` behind the bytes read is undefined
  // after an error, and untouched at the end of the file.
  virtual Readout read(std::span<std::byte> into, Off offset) = 0;
  virtual Result<int64_t> size() = 0;
  virtual int fd() const noexcept = 0;
};

// An existing file. It must tell where it ends, as devices, pipes and files of /proc do not: what
// lies behind a file's end is not read.
Result<std::unique_ptr<ReadableFile>> open_for_reading(const std::string& path);
// The one that `fd` is open on (Descriptor::open_again_for_reading).
Result<std::unique_ptr<ReadableFile>> open_again_for_reading(int fd, const std::string& path);

}  // namespace penstock::io
