// The caller's bytes as a stream: contiguous memory is used in place, other
// memory is walked lazily.
#pragma once

#include <cstddef>
#include <cstring>
#include <optional>
#include <span>

#include "layout/copy.hpp"
#include "layout/cursor.hpp"

namespace penstock::exec {

class UserData {
 public:
  // Stream byte `first` is the first byte of `count` copies of `type` at `memory`.
  UserData(const std::byte* memory, const layout::LoopTree& type, int64_t count, int64_t first)
      : memory_(memory), first_(first) {
    if (type.is_contiguous())
      base_ = memory + type.true_lb();
    else
      cursor_.emplace(type, 0, count);
  }

  bool contiguous() const noexcept { return !cursor_; }
  // REQUIRES contiguous().
  std::span<const std::byte> in_place(int64_t position, int64_t n) const noexcept {
    return {base_ + (position - first_), size_t(n)};
  }
  // The pieces of memory that hold the stream from `position` on: a run of at most n bytes, and the
  // i-th piece of it. REQUIRES !contiguous().
  layout::Run run_at(int64_t position, int64_t n) {
    seek(position);
    return cursor_->next(n);
  }
  std::span<const std::byte> piece(const layout::Run& run, int64_t i) const noexcept {
    return {memory_ + (run.offset + i * run.stride), size_t(run.block)};
  }
  // out[0, n) = stream bytes [position, position + n).
  void pack(std::byte* out, int64_t position, int64_t n) {
    if (contiguous()) {
      std::memcpy(out, in_place(position, n).data(), size_t(n));
      return;
    }
    seek(position);
    layout::gather(out, memory_, *cursor_, n);
  }
  // The same bytes straight to the places that `to` names over `target`.
  void transfer(std::byte* target, Off origin, layout::Cursor& to, int64_t position, int64_t n) {
    if (contiguous()) {
      layout::scatter(target, origin, to, in_place(position, n).data(), n);
      return;
    }
    seek(position);
    layout::transfer(target, origin, to, memory_, *cursor_, n);
  }

 private:
  void seek(int64_t position) {
    if (cursor_->position() != position - first_) cursor_->seek(position - first_);
  }

  const std::byte* memory_;
  const std::byte* base_ = nullptr;
  int64_t first_;
  std::optional<layout::Cursor> cursor_;
};

}  // namespace penstock::exec
