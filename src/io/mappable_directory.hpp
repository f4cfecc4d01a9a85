// For tests: a directory whose file system can be mapped.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "io/in_place.hpp"
#include "io/probe.hpp"
#include "io/temporary_file.hpp"

namespace penstock::io {

inline std::string mappable_directory() {
  const std::string usual = test_directory();
  const int fd = ::open(usual.c_str(), O_RDONLY | O_CLOEXEC);
  const auto found = probe(fd);
  ::close(fd);
  return found && in_place(found->type) != nullptr ? usual : "/dev/shm";
}

}  // namespace penstock::io
