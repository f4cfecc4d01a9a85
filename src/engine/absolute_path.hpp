// Where a relative path leads now, since a program may change its directory later.
#pragma once

#include <unistd.h>

#include <climits>
#include <string>

namespace penstock::engine {

// An empty path is the working directory, which is "." where it cannot be found out.
inline std::string absolute_path(const std::string& path) {
  if (path.starts_with('/')) return path;
  char here[PATH_MAX];
  const std::string base = ::getcwd(here, sizeof here) != nullptr ? here : ".";
  return path.empty() ? base : base + "/" + path;
}

}  // namespace penstock::engine
