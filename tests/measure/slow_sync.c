/* Preloaded: the device takes a second for worker 1's own file (PATH.1). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int fsync(int fd) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path);
  if (length > 2 && memcmp(path + length - 2, ".1", 2) == 0) sleep(1);
  return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd);
}
