// Page-aligned memory for bytes on their way past the page cache whose own memory is not aligned.
// It is the process's, and stays warm from file to file.
#pragma once

#include <cstddef>
#include <span>

#include "base/aligned_buffer.hpp"

namespace penstock::io {

// A buffer of kBytes, given back at the end; empty where there is no memory for it. By several
// threads at once.
class Bounce {
 public:
  static constexpr size_t kBytes = size_t{4} << 20;

  Bounce();
  ~Bounce();
  Bounce(const Bounce&) = delete;
  Bounce& operator=(const Bounce&) = delete;

  std::span<std::byte> memory() const noexcept { return buffer_.first(buffer_.size()); }

 private:
  AlignedBuffer buffer_;
};

}  // namespace penstock::io
