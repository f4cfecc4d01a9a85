#include "pmpi/calls_alone.hpp"

#include <strings.h>

#include <cstdint>
#include <mutex>
#include <string_view>

#include "base/program_imports.hpp"

namespace penstock::pmpi {
namespace {

// Compilers of Fortran write names in lower case, or in upper case, and add to their ends.
bool begins(std::string_view name, std::string_view with) {
  return name.size() >= with.size() && ::strncasecmp(name.data(), with.data(), with.size()) == 0;
}

constexpr std::string_view kFile = "mpi_file_";

// `name` without kFile.
bool has(std::string_view name, std::string_view word) {
  for (size_t i = 0; i + word.size() <= name.size(); ++i)
    if (begins(name.substr(i), word)) return true;
  return false;
}

bool is_of_mpi(std::string_view file) { return file.starts_with("libmpi"); }

CallsAlone look() {
  CallsAlone calls;
  (void)anything_imports(&is_of_mpi, [&](std::string_view name) {
    if (begins(name, "p")) name.remove_prefix(1);
    if (!begins(name, kFile)) return false;
    name.remove_prefix(kFile.size());
    if (has(name, "_shared") || has(name, "_ordered")) calls.at_shared_pointer = true;
    if (begins(name, "iread")) calls.nonblocking_reads = true;
    return calls.at_shared_pointer && calls.nonblocking_reads;
  });
  return calls;
}

}  // namespace

CallsAlone calls_alone() {
  static std::mutex mutex;
  static uint64_t looked_at = 0;
  static CallsAlone known;
  const uint64_t loaded = libraries_loaded();
  const std::lock_guard lock(mutex);
  if (loaded != looked_at) known = look();
  looked_at = loaded;
  return known;
}

}  // namespace penstock::pmpi
