// The list of mechanisms.
#include "io/mechanism.hpp"

#include <array>

namespace penstock::io {

#define PENSTOCK_MECHANISM(name) const Mechanism& name##_mechanism();
#include "io/mechanisms.def"
#undef PENSTOCK_MECHANISM

std::span<const Mechanism* const> mechanisms() {
  static const std::array kAll = {
#define PENSTOCK_MECHANISM(name) &name##_mechanism(),
#include "io/mechanisms.def"
#undef PENSTOCK_MECHANISM
  };
  return kAll;
}

const Mechanism* find_mechanism(std::string_view name) {
  for (const Mechanism* m : mechanisms())
    if (m->name == name) return m;
  return nullptr;
}

}  // namespace penstock::io
