// Words of 64 bits to and from another rank of the same job: native byte order.
// A reader never reads past its end; after a failure it gives zeros.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace penstock::layout {

class WireWriter {
 public:
  explicit WireWriter(std::vector<std::byte>& out) : out_(out) {}
  void put(int64_t value) { put(std::span(&value, 1)); }
  void put(std::span<const int64_t> values) {
    const auto bytes = std::as_bytes(values);
    out_.insert(out_.end(), bytes.begin(), bytes.end());
  }
  // Two in a word; an odd one has a word to itself.
  void put_halves(std::span<const uint32_t> values) {
    const auto bytes = std::as_bytes(values);
    out_.insert(out_.end(), bytes.begin(), bytes.end());
    out_.resize(out_.size() + values.size() % 2 * sizeof(uint32_t));
  }

 private:
  std::vector<std::byte>& out_;
};

class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> in) : in_(in) {}

  int64_t get() {
    int64_t value = 0;
    if (!take(1)) return 0;
    std::memcpy(&value, taken_.data(), sizeof value);
    return value;
  }
  // The next `n` words where they lie. Empty when fewer are left.
  std::span<const std::byte> words(uint64_t n) {
    if (!take(n)) return {};
    return taken_;
  }

  bool ok() const noexcept { return ok_; }
  uint64_t words_left() const noexcept { return in_.size() / sizeof(int64_t); }
  std::span<const std::byte> rest() const noexcept { return in_; }

 private:
  bool take(uint64_t words) {
    ok_ = ok_ && words <= words_left();
    if (!ok_) return false;
    taken_ = in_.first(words * sizeof(int64_t));
    in_ = in_.subspan(taken_.size());
    return true;
  }

  std::span<const std::byte> in_, taken_;
  bool ok_ = true;
};

}  // namespace penstock::layout
