// A window: a part of a file mapped with mmap(2), shared and writable, whose blocks are reserved
// and whose pages are all there, so that no store finds the disk full
// (docs/decisions/0019-mmap.md). It is a mapping of its own, or a part of one that stays.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <tl/expected.hpp>
#include <utility>

#include "base/extent.hpp"

namespace penstock::io {

// The call that kept a window from being mapped, and its errno.
struct Refusal {
  const char* operation;
  int sys_errno;
};

// Pages of a file, unmapped when the last window of them goes. Nothing is promised of them: a store
// into them may raise a signal.
class Mapping {
 public:
  // REQUIRES that `where` is not empty and begins with a page, and that `fd` is open for reading
  // and writing.
  static tl::expected<std::shared_ptr<const Mapping>, Refusal> make(int fd, Extent where);
  Mapping(const Mapping&) = delete;
  ~Mapping();

  Extent where() const noexcept { return where_; }
  std::span<std::byte> memory(Extent part) const noexcept {
    return {begin_ + (part.begin - where_.begin), size_t(part.size())};
  }

 private:
  Mapping(std::byte* begin, Extent where) noexcept : begin_(begin), where_(where) {}

  std::byte* begin_;
  Extent where_;
};

class Window {
 public:
  // Mapped for itself. `reserve_mode` is fallocate's. REQUIRES that `where` is not empty and lies
  // inside the file, and that `fd` is open for reading and writing.
  static tl::expected<Window, Refusal> map(int fd, Extent where, int reserve_mode);
  // The same, as a part of pages of `fd` that are mapped already. REQUIRES that `where` is in them.
  static tl::expected<Window, Refusal> within(std::shared_ptr<const Mapping> pages, int fd,
                                              Extent where, int reserve_mode);

  Window() = default;  // nothing is mapped
  bool mapped() const noexcept { return pages_ != nullptr; }
  // Of `where`.
  std::span<std::byte> memory() const noexcept { return memory_; }

 private:
  Window(std::shared_ptr<const Mapping> pages, std::span<std::byte> memory) noexcept
      : pages_(std::move(pages)), memory_(memory) {}
  static tl::expected<Window, Refusal> populated(std::shared_ptr<const Mapping> pages,
                                                 Extent where);

  std::shared_ptr<const Mapping> pages_;
  std::span<std::byte> memory_;
};

}  // namespace penstock::io
