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
  // Empty when fewer than `n` words are left: a hostile count allocates nothing.
  std::vector<int64_t> get(int64_t n) {
    if (n < 0 || !take(uint64_t(n))) return {};
    std::vector<int64_t> values(static_cast<size_t>(n));
    if (n > 0) std::memcpy(values.data(), taken_.data(), taken_.size());
    return values;
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
