#include "engine/select.hpp"

namespace penstock::engine {
namespace {

const plan::Algorithm& named(const char* name) { return *plan::find_algorithm(name); }

}  // namespace

bool may_share_units(const plan::Team& team, const layout::Geometry& geometry) noexcept {
  return team.nodes <= 1 || geometry.sharing == layout::Sharing::any;
}

const plan::Algorithm* fixed(const plan::Algorithm* named, const plan::Team& team,
                             const layout::Geometry& geometry) noexcept {
  if (named == nullptr || named->owns_blocks || may_share_units(team, geometry)) return named;
  return nullptr;
}

const plan::Algorithm& decide(const plan::Crowd& crowd, const plan::Team& team,
                              const layout::Geometry& geometry) {
  if (!may_share_units(team, geometry)) return named("two_phase");
  return named(crowd.extents_disjoint() ? "individual" : "two_phase");
}

}  // namespace penstock::engine
