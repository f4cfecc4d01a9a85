// A window: a part of a file mapped with mmap(2), shared and writable, whose blocks are reserved
// and whose pages are all there, so that no store finds the disk full
// (docs/decisions/0019-mmap.md).
#pragma once

#include <cstddef>
#include <span>
#include <tl/expected.hpp>
#include <utility>

#include "base/extent.hpp"

namespace penstock::io {

class Window {
 public:
  // The call that kept a window from being mapped, and its errno.
  struct Refusal {
    const char* operation;
    int sys_errno;
  };

  // `reserve_mode` is fallocate's. REQUIRES that `where` is not empty and lies inside the file, and
  // that `fd` is open for reading and writing.
  static tl::expected<Window, Refusal> map(int fd, Extent where, int reserve_mode);

  Window() = default;  // nothing is mapped
  Window(Window&& o) noexcept
      : pages_(std::exchange(o.pages_, {})), before_(std::exchange(o.before_, 0)) {}
  Window& operator=(Window&& o) noexcept {
    std::swap(pages_, o.pages_);
    std::swap(before_, o.before_);
    return *this;
  }
  ~Window();

  bool mapped() const noexcept { return !pages_.empty(); }
  // Of `where`.
  std::span<std::byte> memory() const noexcept { return pages_.subspan(before_); }

 private:
  Window(std::span<std::byte> pages, size_t before) noexcept : pages_(pages), before_(before) {}

  std::span<std::byte> pages_;  // from the beginning of a page
  size_t before_ = 0;           // of them, before `where`
};

}  // namespace penstock::io
