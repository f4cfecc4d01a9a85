// A fixed number of equal buffers for messages in flight, allocated once.
#pragma once

#include <span>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "base/error.hpp"

namespace penstock::exec {

class Chunks {
 public:
  Result<void> reserve(int count, int64_t bytes) {
    if (!free_.empty()) return {};
    if (Result<void> r = memory_.reserve(size_t(count) * size_t(bytes)); !r) return r;
    bytes_ = bytes;
    for (int i = count - 1; i >= 0; --i) free_.push_back(i);
    return {};
  }
  bool available() const noexcept { return !free_.empty(); }
  int take() {
    const int i = free_.back();
    free_.pop_back();
    return i;
  }
  void give_back(int i) { free_.push_back(i); }
  std::span<std::byte> operator[](int i) const noexcept {
    return {memory_.data() + int64_t{i} * bytes_, size_t(bytes_)};
  }
  // Their memory as one, for who knows that none is taken; empty before reserve().
  std::span<std::byte> all() const noexcept { return memory_.first(memory_.size()); }

 private:
  AlignedBuffer memory_;
  int64_t bytes_ = 0;
  std::vector<int> free_;
};

}  // namespace penstock::exec
