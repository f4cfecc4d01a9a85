// Descriptors of ours that stay open, away from those that a program takes for its streams.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace penstock {

// A program that has closed its standard streams (a daemon) may print all the same, and what comes
// to have such a number would get it. `fd`, or another for the same, errno as dup(2) sets it; -1
// stays -1, and nothing is left open.
inline int above_standard_streams(int fd) noexcept {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int above = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int why = errno;
  ::close(fd);
  errno = why;
  return above;
}

}  // namespace penstock
