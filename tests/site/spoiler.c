/* Does to a process what Penstock must not do, so that the suite can be seen to notice: preloaded
 * into the served job by `run.py --spoiled`, it acts when the job's file is opened. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

typedef int (*open_function)(const char*, int, ...);

static void spoil(const char* path) {
  static int done;
  const char* name = strrchr(path, '/');
  if (done || name == NULL || (strcmp(name, "/out") != 0 && strncmp(name, "/new", 4) != 0)) return;
  done = 1;
  umask(0);
  chmod(path, 0666);
  signal(SIGUSR1, SIG_DFL);
  setlocale(LC_ALL, "C");
  open_function real = NULL;
  *(void**)&real = dlsym(RTLD_NEXT, "open");
  (void)real("/etc/passwd", O_RDONLY); /* open across exec */
  (void)real("/dev/shm/penstock-left", O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
}

static int opened(const char* function, const char* path, int flags, mode_t mode) {
  open_function real = NULL;
  *(void**)&real = dlsym(RTLD_NEXT, function);
  const int fd = real(path, flags, mode);
  if (fd >= 0) spoil(path);
  return fd;
}

#define OPEN(function)                             \
  int function(const char* path, int flags, ...) { \
    va_list rest;                                  \
    va_start(rest, flags);                         \
    const mode_t mode = va_arg(rest, mode_t);      \
    va_end(rest);                                  \
    return opened(#function, path, flags, mode);   \
  }
OPEN(open)
OPEN(open64)
