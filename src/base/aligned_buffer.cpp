#include "base/aligned_buffer.hpp"

#include <cerrno>
#include <string>

namespace penstock {

Result<void> AlignedBuffer::reserve(size_t size) {
  if (size <= size_) return {};
  const size_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment;
  void* fresh = std::aligned_alloc(kAlignment, rounded);
  if (fresh == nullptr) return os_error("allocate", std::to_string(rounded) + " bytes", ENOMEM);
  std::free(data_);
  data_ = static_cast<std::byte*>(fresh);
  size_ = rounded;
  return {};
}

}  // namespace penstock
