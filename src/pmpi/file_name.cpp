// Prefixes of file names. ROMIO strips those that name one of its file-system drivers, in capitals
// too.
#include "pmpi/file_name.hpp"

#include <strings.h>

#include <algorithm>
#include <string_view>

namespace penstock::pmpi {
namespace {

template <size_t n>
bool contains(const char* const (&names)[n], const std::string& name) {
  return std::ranges::any_of(
      names, [&](const char* known) { return ::strcasecmp(known, name.c_str()) == 0; });
}

}  // namespace

FileName file_name(const std::string& given) {
  constexpr const char* kPosix[] = {"ufs", "nfs", "xfs", "lustre", "panfs", "gpfs"};
  constexpr const char* kOwnWays[] = {"testfs", "pvfs", "pvfs2",  "daos",    "ime",
                                      "zoidfs", "ad",   "gsiftp", "quobyte", "hdfs"};
  const size_t colon = given.find(':');
  if (colon == given.npos || colon < 2) return {{given}, ""};
  const std::string prefix = given.substr(0, colon);
  if (contains(kOwnWays, prefix)) return {{given}, "file name prefix " + prefix + ":"};
  if (!contains(kPosix, prefix)) return {{given}, ""};
  return {{given.substr(colon + 1), given}, ""};
}

}  // namespace penstock::pmpi
