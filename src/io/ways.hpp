// For tests: the ways in which a mechanism can be asked to write.
#pragma once

#include <string>
#include <vector>

#include "io/mechanism.hpp"

namespace penstock::io {

// Smaller than a cycle, so that some leases lie in one and some do not.
inline constexpr int64_t kWindowOfTests = int64_t{64} << 10;

inline std::string name_of_window(int64_t window_bytes) {
  if (window_bytes == kWindowOfCycle) return "";
  return window_bytes == kWindowOfFile ? "_whole" : "_window";
}

inline std::string name_of_direct(Direct direct) {
  if (direct == Direct::never) return "";
  return direct == Direct::always ? "_direct" : "_cold";
}

// Without options first. Depths are not among them: they change no byte's way.
inline std::vector<OpenRequest> ways_of(const Mechanism& m) {
  std::vector<OpenRequest> all = {{}};
  if (m.takes_direct) all.push_back({.direct = Direct::always});
  if (m.takes_cold) all.push_back({.direct = Direct::when_cold, .cold = kAlwaysCold});
  if (m.takes_registered) all.push_back({.registered = true});
  if (m.takes_direct && m.takes_registered)
    all.push_back({.direct = Direct::always, .registered = true});
  if (m.takes_window) {
    all.push_back({.window_bytes = kWindowOfFile});
    all.push_back({.window_bytes = kWindowOfTests});
  }
  return all;
}

inline OpenRequest request_for(const std::string& path, OpenRequest way) {
  way.path = path;
  return way;
}

// For the names of tests: "uring_direct_registered".
inline std::string name_of_way(const Mechanism& m, const OpenRequest& way) {
  return std::string(m.name) + name_of_direct(way.direct) + (way.registered ? "_registered" : "") +
         name_of_window(way.window_bytes);
}

}  // namespace penstock::io
