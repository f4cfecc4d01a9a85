// Filling, walking and checking an iteration's memory.
#include "memory.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

namespace penstock::measure {

using layout::LoopTree;

Result<LoopTree> MemoryShape::tree(int64_t kept) const {
  if (contiguous()) return LoopTree::bytes(kept);
  const int64_t chunks = kept / len_bytes, tail = kept % len_bytes;
  auto body = LoopTree::strided(chunks, 1, stride_bytes, LoopTree::bytes(len_bytes));
  if (!body || tail == 0) return body;
  const std::array<LoopTree::Field, 2> fields = {
      LoopTree::Field{0, 1, *body},
      LoopTree::Field{chunks * stride_bytes, 1, LoopTree::bytes(tail)}};
  return LoopTree::structure(fields);
}

Result<Memory> Memory::make(const MemoryShape& shape, const Contents& contents,
                            int64_t bytes_per_iteration, int64_t windows) {
  Memory memory(shape, contents, bytes_per_iteration, windows);
  const int64_t sequence = bytes_per_iteration + contents.shift(Contents::kShifts - 1);
  const int64_t size = memory.is_shared() ? shape.footprint(sequence)
                                          : windows * shape.footprint(bytes_per_iteration);
  if (auto ok = memory.buffer_.reserve(size_t(std::max<int64_t>(1, size))); !ok)
    return fail(ErrorClass::no_memory, "buffer",
                std::to_string(size) + " bytes for one worker: lower --bufsize" +
                    (memory.is_shared() ? "" : ", --iters, or say --verify none"));
  memory.wipe();
  if (memory.is_shared()) memory.store(memory.buffer_.data(), 0, sequence);
  return memory;
}

std::byte* Memory::window(int64_t iteration) const noexcept {
  if (!is_shared()) return buffer_.data() + iteration * shape_.footprint(bytes_);
  return buffer_.data() + shape_.address(contents_.shift(iteration));
}

void Memory::store(std::byte* window, int64_t begin, int64_t n) const noexcept {
  if (shape_.contiguous()) {
    contents_.fill(window, begin, n);
    return;
  }
  for (int64_t done = 0; done < n; done += shape_.len_bytes, window += shape_.stride_bytes)
    contents_.fill(window, begin + done, std::min(shape_.len_bytes, n - done));
}

void Memory::fill(int64_t iteration) const noexcept {
  store(window(iteration), contents_.shift(iteration), bytes_);
}

void Memory::wipe() const noexcept { std::memset(buffer_.data(), 0xa5, buffer_.size()); }

int64_t Memory::wrong_bytes(int64_t iteration, int64_t& first_wrong) const {
  const int64_t len = shape_.contiguous() ? bytes_ : shape_.len_bytes;
  std::vector<std::byte> expected(size_t(std::min<int64_t>(bytes_, 1 << 20)));
  int64_t wrong = 0;
  for (int64_t at = 0; at < bytes_;) {
    const int64_t n = std::min({len - at % len, bytes_ - at, int64_t(expected.size())});
    contents_.fill(expected.data(), contents_.shift(iteration) + at, n);
    const std::byte* found = window(iteration) + shape_.address(at);
    if (std::memcmp(found, expected.data(), size_t(n)) != 0)
      for (int64_t i = 0; i < n; ++i) {
        if (found[i] == expected[size_t(i)]) continue;
        if (wrong++ == 0) first_wrong = at + i;
      }
    at += n;
  }
  return wrong;
}

}  // namespace penstock::measure
