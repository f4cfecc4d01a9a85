// Prefixes of file names. ROMIO strips those that name one of its file-system drivers.
#include "pmpi/file_name.hpp"

#include <unistd.h>

#include <algorithm>
#include <string_view>

namespace penstock::pmpi {
namespace {

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

template <size_t n>
bool contains(const std::string_view (&names)[n], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

}  // namespace

FileName file_name(const std::string& given) {
  constexpr std::string_view kPosix[] = {"ufs", "nfs", "xfs", "lustre", "panfs", "gpfs"};
  constexpr std::string_view kOwnWays[] = {"testfs", "pvfs", "pvfs2",  "daos",    "ime",
                                           "zoidfs", "ad",   "gsiftp", "quobyte", "hdfs"};
  const size_t colon = given.find(':');
  if (colon == given.npos || colon < 2) return {given, ""};
  const std::string_view prefix = std::string_view(given).substr(0, colon);
  if (contains(kOwnWays, prefix)) return {given, "file name prefix " + std::string(prefix) + ":"};
  if (!contains(kPosix, prefix)) return {given, ""};
  const std::string stripped = given.substr(colon + 1);
  if (!exists(given)) return {stripped, ""};
  if (!exists(stripped)) return {given, ""};
  return {given, "both " + given + " and " + stripped + " exist: which one the library means?"};
}

}  // namespace penstock::pmpi
