#include "engine/expected_syncs.hpp"

#include <algorithm>
#include <mutex>
#include <string>

#include "base/program_imports.hpp"
#include "io/sync_habit.hpp"

namespace penstock::engine {
namespace {

// Compilers of Fortran add underscores, module names and "_f08".
constexpr std::string_view kSyncs[] = {"mpi_file_sync", "h5fflush",     "nc_sync",
                                       "nf_sync",       "nf90_sync",    "ncmpi_sync",
                                       "nfmpi_sync",    "nf90mpi_sync", "penstock_sync"};

}  // namespace

bool is_sync_function(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  return std::ranges::any_of(
      kSyncs, [&](std::string_view s) { return lower.find(s) != std::string::npos; });
}

void expect_syncs_by_symbols() {
  static std::once_flag once;
  std::call_once(once, [] { io::expect_syncs(program_imports(&is_sync_function)); });
}

}  // namespace penstock::engine
