// The list of algorithms.
#include "plan/algorithm.hpp"

#include <array>

namespace penstock::plan {

#define PENSTOCK_ALGORITHM(name) const Algorithm& name##_algorithm();
#include "plan/algorithms.def"
#undef PENSTOCK_ALGORITHM

std::span<const Algorithm* const> algorithms() {
  static const std::array kAll = {
#define PENSTOCK_ALGORITHM(name) &name##_algorithm(),
#include "plan/algorithms.def"
#undef PENSTOCK_ALGORITHM
  };
  return kAll;
}

const Algorithm* find_algorithm(std::string_view name) {
  for (const Algorithm* a : algorithms())
    if (a->name == name) return a;
  return nullptr;
}

bool takes(const Algorithm& algorithm, std::string_view option) noexcept {
  for (const OptionInfo& o : algorithm.options)
    if (o.name == option) return true;
  return false;
}

Parameters taken_by(const Algorithm& algorithm, Parameters p) noexcept {
  if (!takes(algorithm, "writers")) p.writers = 0;
  if (!takes(algorithm, "cycle")) p.cycle_bytes = 0;
  if (!takes(algorithm, "stripe")) p.stripe_bytes = 0;
  if (!takes(algorithm, "writer")) p.writer = 0;
  if (!takes(algorithm, "at_once")) p.at_once = 0;
  return p;
}

const char* to_string(Needs n) noexcept {
  switch (n) {
    case Needs::nothing:
      return "nothing";
    case Needs::bounds:
      return "bounds";
    case Needs::summaries:
      return "summaries";
    case Needs::cuts:
      return "cuts";
  }
  return "?";
}

}  // namespace penstock::plan
