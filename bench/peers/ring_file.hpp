// How the page ring's bytes enter the file.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "base/aligned_buffer.hpp"
#include "base/extent.hpp"
#include "io/mechanism.hpp"

namespace penstock::peers {

enum class WriteMethod : uint8_t {
  plain,   // pwrite
  stream,  // pwrite, then write-back is started without waiting for it
  direct,  // O_DIRECT for whole blocks, pwrite for what is left of an edge
};

class RingFile {
 public:
  RingFile() = default;
  ~RingFile();
  RingFile(const RingFile&) = delete;
  RingFile& operator=(const RingFile&) = delete;

  // nullopt: open. With `create` the file is made.
  std::optional<Error> open(const std::string& path, WriteMethod method, bool create);
  std::optional<Error> write(std::span<const std::byte> bytes, Off offset);
  std::optional<Error> sync();
  std::optional<Error> close();

 private:
  std::optional<Error> write_stream(std::span<const std::byte> bytes, Off offset);
  std::optional<Error> write_direct(std::span<const std::byte> bytes, Off offset);
  std::optional<Error> write_buffered(std::span<const std::byte> bytes, Off offset);

  std::string path_;
  WriteMethod method_ = WriteMethod::stream;
  int fd_ = -1, direct_fd_ = -1;
  AlignedBuffer bounce_;  // direct I/O from memory that lies otherwise than the file's blocks
};

}  // namespace penstock::peers
