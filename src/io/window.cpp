// Reserve, map, populate: what can fail fails here, and not in a store.
#include "io/window.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>

#include "base/despite_signals.hpp"
#include "base/populate.hpp"

namespace penstock::io {
namespace {

// 0, or the errno.
int reserve(int fd, Extent where, int mode) {
  return take_despite_signals(
      where, [&](Extent e) { return ::fallocate(fd, mode, e.begin, e.size()) == 0 ? 0 : errno; });
}

}  // namespace

Extent whole_pages(Extent where) {
  return {align_down(where.begin, memory_page_bytes()), where.end};
}

tl::expected<Mapping, Refusal> Mapping::make(int fd, Extent where, ReadAhead read_ahead) {
  void* at =
      ::mmap(nullptr, size_t(where.size()), PROT_READ | PROT_WRITE, MAP_SHARED, fd, where.begin);
  if (at == MAP_FAILED) return tl::unexpected(Refusal{"mmap", errno});
  if (read_ahead == ReadAhead::none)
    (void)::madvise(at, size_t(where.size()), MADV_RANDOM);  // else more is read, no harm
  return Mapping(static_cast<std::byte*>(at), where);
}

// Cannot fail for a whole mapping; what was stored is in the file since it was stored.
Mapping::~Mapping() {
  if (begin_ != nullptr) ::munmap(begin_, size_t(where_.size()));
}

tl::expected<std::span<std::byte>, Refusal> ready_part(const Mapping& pages, int fd, Extent where,
                                                       int reserve_mode) {
  if (const int e = reserve(fd, whole_pages(where), reserve_mode))
    return tl::unexpected(Refusal{"fallocate", e});
  if (const int e = populate_for_stores(pages.memory(whole_pages(where))))
    return tl::unexpected(Refusal{"madvise", e});
  return pages.memory(where);
}

tl::expected<Window, Refusal> Window::map(int fd, Extent where, int reserve_mode,
                                          ReadAhead read_ahead) {
  auto pages = Mapping::make(fd, whole_pages(where), read_ahead);
  if (!pages) return tl::unexpected(pages.error());
  const auto memory = ready_part(*pages, fd, where, reserve_mode);
  if (!memory) return tl::unexpected(memory.error());
  Window window;
  window.memory_ = *memory;
  window.own_ = *std::move(pages);
  return window;
}

tl::expected<Window, Refusal> Window::within(std::shared_ptr<const Mapping> pages, int fd,
                                             Extent where, int reserve_mode) {
  const auto memory = ready_part(*pages, fd, where, reserve_mode);
  if (!memory) return tl::unexpected(memory.error());
  Window window;
  window.memory_ = *memory;
  window.whole_ = std::move(pages);
  return window;
}

}  // namespace penstock::io
