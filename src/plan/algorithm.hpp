// Algorithms decide who writes which bytes when. Each is one file and one line
// in algorithms.def; its descriptor feeds `penstock list`, the conformance suite and the
// documentation's table.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/error.hpp"
#include "layout/geometry.hpp"
#include "plan/plan.hpp"
#include "plan/summary.hpp"

namespace penstock::plan {

// What must be known of other ranks before slicing. It decides how much metadata a call exchanges.
enum class Needs : uint8_t { nothing, bounds, summaries, cuts };
const char* to_string(Needs n) noexcept;

struct Parameters {
  int writers = 0;          // 0: the algorithm's own default for the team
  int64_t cycle_bytes = 0;  // collective buffer of one writer; 0: the default
};

struct OptionInfo {
  std::string_view name;     // "writers"
  std::string_view summary;  // "ranks that write; 0 lets the team decide"
};

struct Algorithm {
  std::string_view name;
  std::string_view summary;
  std::string_view source;  // the paper or system it comes from
  Needs needs = Needs::nothing;
  bool owns_blocks = false;
  bool exchanges = true;
  std::span<const OptionInfo> options;
  // Pure. Fails with ErrorClass::argument when a parameter cannot be met, naming it.
  Result<std::unique_ptr<const Plan>> (*place)(const Parameters&, const Team&, const Crowd&,
                                               const layout::Geometry&) = nullptr;
};

std::span<const Algorithm* const> algorithms();          // in the order of algorithms.def
const Algorithm* find_algorithm(std::string_view name);  // nullptr when there is none

// As ROMIO's cb_buffer_size. Smaller ones stay in cache, but writers of one file wait for each
// other in the kernel once per cycle, and each wait is dear
// (docs/decisions/0010-cycle-of-16-mib.md).
inline constexpr int64_t kDefaultCycleBytes = int64_t{16} << 20;
inline constexpr int64_t kMaxCycleBytes = int64_t{1}
                                          << 30;  // so that a message's count fits an int

}  // namespace penstock::plan
