/* A preloaded library that makes system calls on some files fail, for tests: what a full disk, a
 * dying device or a slow one does, at a call that the test chooses. It sees neither io_uring nor
 * stores to mapped memory. libc only.
 *
 *   PENSTOCK_TEST_FAULT="call=pwrite,nth=3,errno=ENOSPC,path=/tmp/out,rank=1"
 *
 *   call=     pwrite (all writing calls), fsync (and fdatasync), close, open, ftruncate, read
 *   path=     files whose absolute path begins so; /proc/self/fd tells for descriptors
 *   nth=      the n-th matching call of a process, from 1 (default 1)
 *   every=1   that call and all later ones
 *   errno=    what it fails with: a name or a number
 *   short=    instead of failing, transfer at most so many bytes and succeed
 *   delay_ms= sleep before each matching call, failing or not
 *   rank=     only in the process of this rank (PMI_RANK, OMPI_COMM_WORLD_RANK, PMIX_RANK)
 *
 * PENSTOCK_TEST_FAULT_LOG names a file that gets a line for each call that was made to fail, so
 * that a test can tell "survived the fault" from "never met it". A variable that is not understood
 * stops the process: a fault that is not injected must not look like a passed test. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum call { NO_CALL, WRITE, SYNC, CLOSE, OPEN, TRUNCATE, READ };

static struct {
  enum call call; /* NO_CALL: nothing is injected in this process */
  char path[PATH_MAX];
  long nth, every, delay_ms, rank;
  long short_bytes; /* -1: the call fails instead */
  int sys_errno;    /* 0: the call does not fail */
} fault = {.nth = 1, .rank = -1, .short_bytes = -1};

static atomic_long matching_calls;

/* ---- the variable */

struct word {
  const char* name;
  int value;
};

static const struct word call_words[] = {
    {"pwrite", WRITE},       {"fsync", SYNC}, {"close", CLOSE}, {"open", OPEN},
    {"ftruncate", TRUNCATE}, {"read", READ},  {NULL, 0}};

static const struct word errno_words[] = {
    {"ENOSPC", ENOSPC}, {"EIO", EIO},       {"EDQUOT", EDQUOT}, {"EFBIG", EFBIG},
    {"EINTR", EINTR},   {"EAGAIN", EAGAIN}, {"EROFS", EROFS},   {"EACCES", EACCES},
    {"EPERM", EPERM},   {"ENOENT", ENOENT}, {"ENOMEM", ENOMEM}, {NULL, 0}};

static void stop(const char* why, const char* what) {
  fprintf(stderr, "penstock_fault: PENSTOCK_TEST_FAULT: %s: %s\n", why, what);
  _exit(2);
}

static int look_up(const struct word* words, const char* name) {
  for (; words->name != NULL; ++words)
    if (strcmp(words->name, name) == 0) return words->value;
  return 0;
}

static long number(const char* text) {
  char* end = NULL;
  const long value = strtol(text, &end, 10);
  if (end == text || *end != '\0' || value < 0) stop("not a number", text);
  return value;
}

static void set_errno(const char* text) {
  fault.sys_errno = look_up(errno_words, text);
  if (fault.sys_errno == 0) fault.sys_errno = (int)number(text);
}

static void set(const char* key, const char* value) {
  if (strcmp(key, "call") == 0)
    fault.call = (enum call)look_up(call_words, value);
  else if (strcmp(key, "path") == 0)
    snprintf(fault.path, sizeof fault.path, "%s", value);
  else if (strcmp(key, "errno") == 0)
    set_errno(value);
  else if (strcmp(key, "nth") == 0)
    fault.nth = number(value);
  else if (strcmp(key, "every") == 0)
    fault.every = number(value);
  else if (strcmp(key, "short") == 0)
    fault.short_bytes = number(value);
  else if (strcmp(key, "delay_ms") == 0)
    fault.delay_ms = number(value);
  else if (strcmp(key, "rank") == 0)
    fault.rank = number(value);
  else
    stop("unknown key", key);
}

static int is_my_rank(void) {
  static const char* const variables[] = {"PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"};
  if (fault.rank < 0) return 1;
  for (size_t i = 0; i < sizeof variables / sizeof *variables; ++i) {
    const char* text = getenv(variables[i]);
    if (text != NULL) return atol(text) == fault.rank;
  }
  return 0; /* a launcher or a shell */
}

__attribute__((constructor)) static void read_variable(void) {
  const char* given = getenv("PENSTOCK_TEST_FAULT");
  if (given == NULL || *given == '\0') return;
  static char text[PATH_MAX + 256];
  if (strlen(given) >= sizeof text) stop("too long", given);
  strcpy(text, given);
  char* rest = NULL;
  for (char* item = strtok_r(text, ",", &rest); item != NULL; item = strtok_r(NULL, ",", &rest)) {
    char* value = strchr(item, '=');
    if (value == NULL) stop("must be key=value", item);
    *value++ = '\0';
    set(item, value);
  }
  if (fault.call == NO_CALL) stop("call must be given and known", given);
  if (fault.path[0] != '/') stop("path must be given and absolute", given);
  if (fault.sys_errno == 0 && fault.short_bytes < 0 && fault.delay_ms == 0)
    stop("needs errno, short or delay_ms", given);
  if (!is_my_rank()) fault.call = NO_CALL;
}

/* ---- which calls */

static int path_matches(const char* path) {
  return strncmp(path, fault.path, strlen(fault.path)) == 0;
}

static int descriptor_matches(int fd) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t n = readlink(link, path, sizeof path - 1);
  if (n < 0) return 0;
  path[n] = '\0';
  return path_matches(path);
}

static int name_matches(const char* name) {
  if (name == NULL) return 0;
  if (name[0] == '/') return path_matches(name);
  char directory[PATH_MAX], path[2 * PATH_MAX];
  if (getcwd(directory, sizeof directory) == NULL) return 0;
  snprintf(path, sizeof path, "%s/%s", directory, name);
  return path_matches(path);
}

/* By bare system calls, which no fault can meet. */
static void note(long n) {
  const char* path = getenv("PENSTOCK_TEST_FAULT_LOG");
  if (path == NULL) return;
  char line[96];
  const int size = snprintf(line, sizeof line, "pid %ld: matching call %ld, errno %d, short %ld\n",
                            (long)getpid(), n, fault.sys_errno, fault.short_bytes);
  const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (fd < 0) return;
  syscall(SYS_write, fd, line, (size_t)size);
  syscall(SYS_close, fd);
}

/* Whether a matching call is the one; counts, and sleeps. */
static int strikes(void) {
  if (fault.delay_ms > 0) {
    const struct timespec delay = {fault.delay_ms / 1000, fault.delay_ms % 1000 * 1000000};
    nanosleep(&delay, NULL);
  }
  if (fault.sys_errno == 0 && fault.short_bytes < 0) return 0;
  const long n = atomic_fetch_add(&matching_calls, 1) + 1;
  const int hit = fault.every != 0 ? n >= fault.nth : n == fault.nth;
  if (hit) note(n);
  return hit;
}

static int hit_descriptor(enum call call, int fd) {
  if (fault.call != call) return 0;
  const int keep = errno;
  const int hit = descriptor_matches(fd) && strikes();
  errno = keep;
  return hit;
}

static int hit_name(const char* name) {
  if (fault.call != OPEN) return 0;
  const int keep = errno;
  const int hit = name_matches(name) && strikes();
  errno = keep;
  return hit;
}

static int fail(void) {
  errno = fault.sys_errno != 0 ? fault.sys_errno : EIO;
  return -1;
}

static size_t shortened(size_t n) {
  return n < (size_t)fault.short_bytes ? n : (size_t)fault.short_bytes;
}

/* The first bytes of a vector; returns the number of pieces. */
static int shorten_vector(const struct iovec* all, int pieces, struct iovec* first) {
  size_t left = (size_t)fault.short_bytes;
  int n = 0;
  for (; n < pieces && n < IOV_MAX && left > 0; ++n) {
    first[n] = all[n];
    if (first[n].iov_len > left) first[n].iov_len = left;
    left -= first[n].iov_len;
  }
  return n;
}

/* ---- the calls */

#define REAL(name)               \
  static __typeof__(name)* real; \
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, #name)

#define TRANSFER(kind, name, buffer, parameters, ...) \
  ssize_t name parameters {                           \
    REAL(name);                                       \
    if (hit_descriptor(kind, fd)) {                   \
      if (fault.short_bytes < 0) return fail();       \
      n = shortened(n);                               \
    }                                                 \
    return real(fd, buffer, n __VA_ARGS__);           \
  }

#define COMMA_OFFSET , offset
TRANSFER(WRITE, write, data, (int fd, const void* data, size_t n), )
TRANSFER(WRITE, pwrite, data, (int fd, const void* data, size_t n, off_t offset), COMMA_OFFSET)
TRANSFER(WRITE, pwrite64, data, (int fd, const void* data, size_t n, off64_t offset), COMMA_OFFSET)
TRANSFER(READ, read, data, (int fd, void* data, size_t n), )
TRANSFER(READ, pread, data, (int fd, void* data, size_t n, off_t offset), COMMA_OFFSET)
TRANSFER(READ, pread64, data, (int fd, void* data, size_t n, off64_t offset), COMMA_OFFSET)

#define TRANSFER_VECTOR(kind, name, parameters, ...) \
  ssize_t name parameters {                          \
    REAL(name);                                      \
    struct iovec first[IOV_MAX];                     \
    if (hit_descriptor(kind, fd)) {                  \
      if (fault.short_bytes < 0) return fail();      \
      pieces = shorten_vector(v, pieces, first);     \
      v = first;                                     \
    }                                                \
    return real(fd, v, pieces __VA_ARGS__);          \
  }

#define COMMA_OFFSET_FLAGS , offset, flags
TRANSFER_VECTOR(WRITE, writev, (int fd, const struct iovec* v, int pieces), )
TRANSFER_VECTOR(WRITE, pwritev, (int fd, const struct iovec* v, int pieces, off_t offset),
                COMMA_OFFSET)
TRANSFER_VECTOR(WRITE, pwritev64, (int fd, const struct iovec* v, int pieces, off64_t offset),
                COMMA_OFFSET)
TRANSFER_VECTOR(WRITE, pwritev2,
                (int fd, const struct iovec* v, int pieces, off_t offset, int flags),
                COMMA_OFFSET_FLAGS)
TRANSFER_VECTOR(WRITE, pwritev64v2,
                (int fd, const struct iovec* v, int pieces, off64_t offset, int flags),
                COMMA_OFFSET_FLAGS)
TRANSFER_VECTOR(READ, readv, (int fd, const struct iovec* v, int pieces), )
TRANSFER_VECTOR(READ, preadv, (int fd, const struct iovec* v, int pieces, off_t offset),
                COMMA_OFFSET)
TRANSFER_VECTOR(READ, preadv64, (int fd, const struct iovec* v, int pieces, off64_t offset),
                COMMA_OFFSET)

#define ON_DESCRIPTOR(kind, name, parameters, arguments)       \
  int name parameters {                                        \
    REAL(name);                                                \
    return hit_descriptor(kind, fd) ? fail() : real arguments; \
  }

ON_DESCRIPTOR(SYNC, fsync, (int fd), (fd))
ON_DESCRIPTOR(SYNC, fdatasync, (int fd), (fd))
ON_DESCRIPTOR(TRUNCATE, ftruncate, (int fd, off_t size), (fd, size))
ON_DESCRIPTOR(TRUNCATE, ftruncate64, (int fd, off64_t size), (fd, size))

/* Linux releases the descriptor of a close that fails, so this does too. */
int close(int fd) {
  REAL(close);
  const int hit = hit_descriptor(CLOSE, fd);
  const int closed = real(fd);
  return hit ? fail() : closed;
}

static mode_t mode_of(int flags, va_list more) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(more, mode_t) : 0;
}

#define OPEN_CALL(name)                                       \
  int name(const char* path, int flags, ...) {                \
    REAL(name);                                               \
    va_list more;                                             \
    va_start(more, flags);                                    \
    const mode_t mode = mode_of(flags, more);                 \
    va_end(more);                                             \
    return hit_name(path) ? fail() : real(path, flags, mode); \
  }

OPEN_CALL(open)
OPEN_CALL(open64)

/* A name relative to a directory's descriptor is not resolved: only absolute names and those in the
 * working directory match. */
#define OPENAT_CALL(name)                                                         \
  int name(int directory, const char* path, int flags, ...) {                     \
    REAL(name);                                                                   \
    va_list more;                                                                 \
    va_start(more, flags);                                                        \
    const mode_t mode = mode_of(flags, more);                                     \
    va_end(more);                                                                 \
    const int known = directory == AT_FDCWD || path[0] == '/';                    \
    return known && hit_name(path) ? fail() : real(directory, path, flags, mode); \
  }

OPENAT_CALL(openat)
OPENAT_CALL(openat64)

/* What programs built with _FORTIFY_SOURCE call instead of open(path, flags). */
int __open_2(const char* path, int flags) { return open(path, flags); }
int __open64_2(const char* path, int flags) { return open64(path, flags); }
