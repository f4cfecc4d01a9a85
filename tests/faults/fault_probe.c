/* Makes one kind of call four times on FILE and prints what each gave, for the tests of the
 * injector: fault_probe FILE pwrite|writev|fsync|close|open|ftruncate|read */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static const char* path;
static char bytes[10] = "0123456789";

static long once(const char* call, int fd) {
  const struct iovec two[2] = {{bytes, 4}, {bytes + 4, 6}};
  if (strcmp(call, "pwrite") == 0) return pwrite(fd, bytes, sizeof bytes, 0);
  if (strcmp(call, "writev") == 0) return pwritev(fd, two, 2, 0);
  if (strcmp(call, "fsync") == 0) return fsync(fd);
  if (strcmp(call, "close") == 0) return close(dup(fd));
  if (strcmp(call, "ftruncate") == 0) return ftruncate(fd, 10);
  if (strcmp(call, "read") == 0) return pread(fd, bytes, sizeof bytes, 0);
  const int again = open(path, O_RDONLY);
  if (again >= 0) close(again);
  return again >= 0 ? 0 : -1;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  path = argv[1];
  const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || write(fd, bytes, sizeof bytes) != (ssize_t)sizeof bytes) {
    fprintf(stderr, "fault_probe: cannot prepare %s: %s\n", path, strerror(errno));
    return 2;
  }
  printf("got");
  for (int i = 0; i < 4; ++i) {
    const long result = once(argv[2], fd);
    if (result < 0)
      printf(" %s", strerrorname_np(errno));
    else
      printf(" %ld", result);
  }
  printf(".\n");
  return 0;
}
