// A window: a part of a file mapped with mmap(2), shared and writable, whose blocks are reserved
// and whose pages are all there, so that no store finds the disk full
// (docs/decisions/0019-mmap.md). It is a mapping of its own, or a part of one that stays.
#pragma once

#include <cstddef>
#include <cstdint>
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

// What a page that is not in memory brings along from the device when it is faulted in: what the
// kernel thinks will be wanted next, or nothing.
enum class ReadAhead : uint8_t { as_usual, none };

// `where`, from the beginning of the page of this machine's memory on in which it begins.
Extent whole_pages(Extent where);

// Pages of a file, unmapped when it goes. Nothing is promised of them: a store into them may raise
// a signal.
class Mapping {
 public:
  // REQUIRES that `where` is not empty and begins with a page, and that `fd` is open for reading
  // and writing.
  static tl::expected<Mapping, Refusal> make(int fd, Extent where,
                                             ReadAhead read_ahead = ReadAhead::as_usual);
  Mapping() = default;  // of nothing
  Mapping(Mapping&& o) noexcept
      : begin_(std::exchange(o.begin_, nullptr)), where_(std::exchange(o.where_, {})) {}
  Mapping& operator=(Mapping&& o) noexcept {
    std::swap(begin_, o.begin_);
    std::swap(where_, o.where_);
    return *this;
  }
  ~Mapping();

  Extent where() const noexcept { return where_; }
  std::span<std::byte> memory(Extent part) const noexcept {
    return {begin_ + (part.begin - where_.begin), size_t(part.size())};
  }

 private:
  Mapping(std::byte* begin, Extent where) noexcept : begin_(begin), where_(where) {}

  std::byte* begin_ = nullptr;
  Extent where_;
};

// A part of pages of `fd` that are mapped already, its blocks reserved and its pages there: its
// memory. REQUIRES that the pages of `where`, which is not empty, are in them, and that it lies
// inside the file.
tl::expected<std::span<std::byte>, Refusal> ready_part(const Mapping& pages, int fd, Extent where,
                                                       int reserve_mode);

class Window {
 public:
  // Mapped for itself. `reserve_mode` is fallocate's. REQUIRES that `where` is not empty and lies
  // inside the file, and that `fd` is open for reading and writing.
  static tl::expected<Window, Refusal> map(int fd, Extent where, int reserve_mode,
                                           ReadAhead read_ahead = ReadAhead::as_usual);
  // As ready_part(), and keeps the pages.
  static tl::expected<Window, Refusal> within(std::shared_ptr<const Mapping> pages, int fd,
                                              Extent where, int reserve_mode);

  Window() = default;  // nothing is mapped
  Window(Window&& o) noexcept
      : own_(std::move(o.own_)),
        whole_(std::move(o.whole_)),
        memory_(std::exchange(o.memory_, {})) {}
  Window& operator=(Window&& o) noexcept {
    std::swap(own_, o.own_);
    std::swap(whole_, o.whole_);
    std::swap(memory_, o.memory_);
    return *this;
  }
  bool mapped() const noexcept { return !memory_.empty(); }
  // Of `where`.
  std::span<std::byte> memory() const noexcept { return memory_; }

 private:
  Mapping own_;                           // or
  std::shared_ptr<const Mapping> whole_;  // that stays as long as a window of it
  std::span<std::byte> memory_;
};

}  // namespace penstock::io
