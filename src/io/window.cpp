// Reserve, map, populate: what can fail fails here, and not in a store.
#include "io/window.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#ifndef MADV_POPULATE_WRITE  // glibc before 2.35; the kernel has it from 5.14
#define MADV_POPULATE_WRITE 23
#endif

namespace penstock::io {
namespace {

Off page_bytes() {
  static const Off bytes = ::sysconf(_SC_PAGESIZE);
  return bytes;
}

// 0, or the errno.
int reserve(int fd, Extent where, int mode) {
  int rc;
  do {
    rc = ::fallocate(fd, mode, where.begin, where.size());
  } while (rc != 0 && errno == EINTR);
  return rc == 0 ? 0 : errno;
}

// 0, or the errno.
int populate(std::span<std::byte> pages) {
  int rc;
  do {
    rc = ::madvise(pages.data(), pages.size(), MADV_POPULATE_WRITE);
  } while (rc != 0 && errno == EINTR);
  return rc == 0 ? 0 : errno;
}

}  // namespace

tl::expected<Window, Window::Refusal> Window::map(int fd, Extent where, int reserve_mode) {
  const Extent pages{align_down(where.begin, page_bytes()), where.end};
  if (const int e = reserve(fd, pages, reserve_mode))
    return tl::unexpected(Refusal{"fallocate", e});
  const auto size = size_t(pages.size());
  void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, pages.begin);
  if (at == MAP_FAILED) return tl::unexpected(Refusal{"mmap", errno});
  Window window({static_cast<std::byte*>(at), size}, size_t(where.begin - pages.begin));
  if (const int e = populate(window.pages_)) return tl::unexpected(Refusal{"madvise", e});
  return window;
}

// Cannot fail for a whole mapping; what was stored is in the file since it was stored.
Window::~Window() {
  if (mapped()) ::munmap(pages_.data(), pages_.size());
}

}  // namespace penstock::io
