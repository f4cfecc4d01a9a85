// Page-aligned memory that reports failure instead of throwing, and grows only.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "base/units.hpp"

namespace penstock {

class AlignedBuffer {
 public:
  static constexpr size_t kAlignment = kPageStep;

  AlignedBuffer() = default;
  AlignedBuffer(AlignedBuffer&& o) noexcept
      : data_(std::exchange(o.data_, nullptr)), size_(std::exchange(o.size_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& o) noexcept {
    std::swap(data_, o.data_);
    std::swap(size_, o.size_);
    return *this;
  }
  ~AlignedBuffer() { std::free(data_); }

  // Makes at least `size` bytes available; the contents are undefined when it grows.
  Result<void> reserve(size_t size);

  std::byte* data() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }
  std::span<std::byte> first(size_t n) const noexcept { return {data_, n}; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace penstock
