/* Preloaded: the third pwrite of a process writes one byte that is not the caller's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static ssize_t damage(const char* name, int fd, const void* data, size_t n, off_t offset) {
  static atomic_int calls;
  ssize_t (*real)(int, const void*, size_t, off_t) =
      (ssize_t(*)(int, const void*, size_t, off_t))dlsym(RTLD_NEXT, name);
  if (atomic_fetch_add(&calls, 1) != 2 || n == 0) return real(fd, data, n, offset);
  char* other = malloc(n);
  memcpy(other, data, n);
  other[n / 2] ^= 1;
  ssize_t written = real(fd, other, n, offset);
  free(other);
  return written;
}

ssize_t pwrite(int fd, const void* data, size_t n, off_t offset) {
  return damage("pwrite", fd, data, n, offset);
}
ssize_t pwrite64(int fd, const void* data, size_t n, off_t offset) {
  return damage("pwrite64", fd, data, n, offset);
}
