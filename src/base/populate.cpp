#include "base/populate.hpp"

#include <sys/mman.h>

#include <cerrno>

#ifndef MADV_POPULATE_READ  // glibc before 2.35
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

namespace penstock {

int populate_for_stores(std::span<std::byte> pages) noexcept {
  int rc;
  do {
    rc = ::madvise(pages.data(), pages.size(), MADV_POPULATE_WRITE);
  } while (rc != 0 && errno == EINTR);
  return rc == 0 ? 0 : errno;
}

void map_populated(std::span<std::byte> pages) noexcept {
  (void)::madvise(pages.data(), pages.size(), MADV_POPULATE_READ);
}

}  // namespace penstock
