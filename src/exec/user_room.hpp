// The caller's memory of a read: where the bytes of its stream go. The mirror of UserData.
#pragma once

#include <cstddef>
#include <cstring>
#include <optional>
#include <span>

#include "layout/copy.hpp"
#include "layout/cursor.hpp"

namespace penstock::exec {

class UserRoom {
 public:
  // Stream byte `first` goes to the first byte of `count` copies of `type` at `memory`.
  UserRoom(std::byte* memory, const layout::LoopTree& type, int64_t count, int64_t first)
      : memory_(memory), first_(first) {
    if (type.is_contiguous())
      base_ = memory + type.true_lb();
    else
      cursor_.emplace(type, 0, count);
  }

  bool contiguous() const noexcept { return !cursor_; }
  // REQUIRES contiguous().
  std::span<std::byte> in_place(int64_t position, int64_t n) const noexcept {
    return {base_ + (position - first_), size_t(n)};
  }
  // Stream bytes [position, position + n) = packed[0, n).
  void unpack(const std::byte* packed, int64_t position, int64_t n) {
    if (contiguous()) {
      std::memcpy(in_place(position, n).data(), packed, size_t(n));
      return;
    }
    seek(position);
    layout::scatter(memory_, 0, *cursor_, packed, n);
  }
  // The same bytes straight from the places that `from` names over `source`, whose first byte is
  // file byte `origin`.
  void take(const std::byte* source, Off origin, layout::Cursor& from, int64_t position,
            int64_t n) {
    if (contiguous()) {
      layout::gather(in_place(position, n).data(), source, origin, from, n);
      return;
    }
    seek(position);
    layout::transfer(memory_, 0, *cursor_, source, origin, from, n);
  }

 private:
  void seek(int64_t position) {
    if (cursor_->position() != position - first_) cursor_->seek(position - first_);
  }

  std::byte* memory_;
  std::byte* base_ = nullptr;
  int64_t first_;
  std::optional<layout::Cursor> cursor_;
};

}  // namespace penstock::exec
