// Named strategies of benson-2003: words for a method of the engine and how files are shared.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "engine/method.hpp"
#include "route.hpp"

namespace penstock::measure {

struct Strategy {
  std::string_view name;
  std::string_view summary;
  // Between algorithm and return; MECHANISM and SYNC are filled in. SYNC becomes "none" without
  // --syncsize.
  std::string_view method;
  std::string_view sync;  // the policy's word for syncs every syncsize bytes
  Files files;
  Access access;
  int least_workers;
  // Worker 0 does not compute: it writes what the others hand over to it.
  bool dedicated = false;
};
std::span<const Strategy> strategies();
const Strategy* find_strategy(std::string_view name);  // nullptr when there is none

// "individual + none + pwrite + every=4MiB".
std::string method_text(const Strategy& strategy, std::string_view mechanism,
                        int64_t syncsize_bytes);
// Empty when this version's engine has what it needs, else the engine's own words.
std::string why_unavailable(const Strategy& strategy);

}  // namespace penstock::measure
