#include "base/populate.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "base/extent.hpp"

#ifndef MADV_POPULATE_READ  // glibc before 2.35
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

namespace penstock {

int64_t memory_page_bytes() noexcept {
  static const int64_t bytes = ::sysconf(_SC_PAGESIZE);
  return bytes;
}

int populate_for_stores(std::span<std::byte> pages) noexcept {
  int rc;
  do {
    rc = ::madvise(pages.data(), pages.size(), MADV_POPULATE_WRITE);
  } while (rc != 0 && errno == EINTR);
  return rc == 0 ? 0 : errno;
}

bool are_readable(std::span<const std::byte> bytes) noexcept {
  const auto begin =
      align_down(Off(reinterpret_cast<uintptr_t>(bytes.data())), memory_page_bytes());
  const auto end = Off(reinterpret_cast<uintptr_t>(bytes.data())) + Off(bytes.size());
  void* const first = reinterpret_cast<void*>(uintptr_t(begin));
  int rc;
  do {
    rc = ::madvise(first, size_t(end - begin), MADV_POPULATE_READ);
  } while (rc != 0 && errno == EINTR);
  return rc == 0;
}

void map_populated(std::span<std::byte> pages) noexcept {
  (void)::madvise(pages.data(), pages.size(), MADV_POPULATE_READ);
}

}  // namespace penstock
