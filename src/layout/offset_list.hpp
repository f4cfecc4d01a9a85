// A list of offsets that share a unit: four bytes each where the unit lets them fit, eight where
// not. What a loop tree keeps of irregular blocks, of which there may be tens of millions.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

namespace penstock::layout {

class OffsetList {
 public:
  OffsetList() = default;
  // Empty, with room for `n` numbers of [0, largest] that `unit` divides. REQUIRES unit >= 1.
  OffsetList(size_t n, int64_t unit, int64_t largest)
      // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): it cannot know what is REQUIRED
      : unit_(largest / unit <= int64_t{UINT32_MAX} ? unit : 0),
        memory_(std::make_unique_for_overwrite<std::byte[]>(n * width())) {}
  // `n` multiples of `unit`, copied from where units() of another lay. REQUIRES unit >= 1.
  OffsetList(std::span<const std::byte> units, size_t n, int64_t unit)
      : unit_(unit), size_(n), memory_(std::make_unique_for_overwrite<std::byte[]>(n * width())) {
    std::memcpy(memory_.get(), units.data(), memory_bytes());
  }

  // REQUIRES room for it.
  void push_back(int64_t value) noexcept {
    if (narrow())
      reinterpret_cast<uint32_t*>(memory_.get())[size_++] = uint32_t(in_units(value));
    else
      reinterpret_cast<int64_t*>(memory_.get())[size_++] = value;
  }

  // `n` more, as multiples of unit(), for the caller to write. REQUIRES narrow(), and room for
  // them.
  std::span<uint32_t> take(size_t n) noexcept {
    uint32_t* const first = reinterpret_cast<uint32_t*>(memory_.get()) + size_;
    size_ += n;
    return {first, n};
  }

  int64_t operator[](size_t i) const noexcept {
    return narrow() ? int64_t{units().data()[i]} * unit_ : bytes().data()[i];
  }
  size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }

  // The first that is greater than `value`. REQUIRES value >= 0, and an ascending list.
  int64_t upper_bound(int64_t value) const noexcept {
    if (!narrow()) return std::ranges::upper_bound(bytes(), value) - bytes().begin();
    const auto key = uint32_t(std::min(value / unit_, int64_t{UINT32_MAX}));
    return std::ranges::upper_bound(units(), key) - units().begin();
  }

  // How it is kept, for the wire: as multiples of unit(), or as they are.
  bool narrow() const noexcept { return unit_ != 0; }
  int64_t unit() const noexcept { return unit_; }
  std::span<const uint32_t> units() const noexcept {
    return {reinterpret_cast<const uint32_t*>(memory_.get()), size_};
  }
  std::span<const int64_t> bytes() const noexcept {
    return {reinterpret_cast<const int64_t*>(memory_.get()), size_};
  }

  std::span<const std::byte> memory() const noexcept { return {memory_.get(), memory_bytes()}; }
  size_t memory_bytes() const noexcept { return size_ * width(); }
  // Equal nodes have equal units, so what is equal is kept alike.
  friend bool operator==(const OffsetList& a, const OffsetList& b) noexcept {
    return a.unit_ == b.unit_ && a.size_ == b.size_ &&
           (a.empty() || std::memcmp(a.memory_.get(), b.memory_.get(), a.memory_bytes()) == 0);
  }

 private:
  size_t width() const noexcept { return narrow() ? sizeof(uint32_t) : sizeof(int64_t); }
  // Most units are powers of two, and a division takes as long as the rest of an entry.
  int64_t in_units(int64_t value) const noexcept {
    return (unit_ & (unit_ - 1)) == 0 ? value >> std::countr_zero(uint64_t(unit_)) : value / unit_;
  }

  int64_t unit_ = 0;  // 0: eight bytes each
  size_t size_ = 0;
  std::unique_ptr<std::byte[]> memory_;
};

}  // namespace penstock::layout
