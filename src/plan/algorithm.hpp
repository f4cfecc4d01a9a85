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
  int writers = 0;           // 0: the algorithm's own default for the team
  int64_t cycle_bytes = 0;   // collective buffer of one writer; 0: the default
  int64_t stripe_bytes = 0;  // of what is dealt to the writers; 0: the file system's, or a default
  int writer = 0;            // the rank that alone writes
  int at_once = 0;           // ranks that write at a time, where all do; 0: all of them
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
  // And a block has the same writer in every call with these parameters.
  bool keeps_writers = false;
  bool exchanges = true;
  // What a writer collects in a cycle may lie anywhere in its extent, between bytes of others. Then
  // extents may be large and overlap, and a page is a list of what its senders bring.
  bool scatters = false;
  // A writer hands its pages to a thread of its own, which writes them while the next are filled.
  bool writes_behind = false;
  std::span<const OptionInfo> options;
  // Pure. Fails with ErrorClass::argument when a parameter cannot be met, naming it.
  Result<std::unique_ptr<const Plan>> (*place)(const Parameters&, const Team&, const Crowd&,
                                               const layout::Geometry&) = nullptr;
};

// No two writers fill one page of the file: each owns whole blocks, or fills none and writes its
// own bytes as they are. What mechanisms with pages of the file's own need.
inline bool keeps_pages_apart(const Algorithm& algorithm) noexcept {
  return algorithm.owns_blocks || !algorithm.exchanges;
}

// A writer's cycle ends at places in the file: all that comes for the extent of its page in a call
// comes in this cycle. Else a cycle takes the next of each sender's stream, and others may have
// filled parts of the extent.
inline bool cycles_end_in_file(const Algorithm& algorithm) noexcept {
  return !algorithm.scatters || algorithm.needs == Needs::cuts;
}

std::span<const Algorithm* const> algorithms();          // in the order of algorithms.def
const Algorithm* find_algorithm(std::string_view name);  // nullptr when there is none
bool takes(const Algorithm& algorithm, std::string_view option) noexcept;
// `parameters` without those that the algorithm has no option for.
Parameters taken_by(const Algorithm& algorithm, Parameters parameters) noexcept;

// As ROMIO's cb_buffer_size. Smaller ones stay in cache, but writers of one file wait for each
// other in the kernel once per cycle, and each wait is dear
// (docs/decisions/0010-cycle-of-16-mib.md).
inline constexpr int64_t kDefaultCycleBytes = int64_t{16} << 20;
inline constexpr int64_t kMaxCycleBytes = int64_t{1}
                                          << 30;  // so that a message's count fits an int

}  // namespace penstock::plan
