#include "engine/select.hpp"

namespace penstock::engine {
namespace {

using layout::Sharing;

// A call that spans more is nearly all holes, and its writers' pages would grow with it.
constexpr int64_t kWidest = int64_t{1} << 46;  // 64 TiB

const plan::Algorithm& named(const char* name) { return *plan::find_algorithm(name); }

// A node keeps in its cache what it wrote of a page, and what it takes the rest for. Without locks
// that rest may reach the file whenever the page does, over what another node wrote in another
// call.
bool must_keep_writers(const plan::Team& team, const layout::Geometry& geometry) noexcept {
  return team.nodes > 1 && geometry.sharing == Sharing::unit_keeps_node;
}

bool is_worth_sharing(const plan::Crowd& crowd) {
  return !crowd.extents_disjoint() && crowd.bounds().size() <= kWidest;
}

}  // namespace

bool may_share_units(const plan::Team& team, const layout::Geometry& geometry) noexcept {
  return team.nodes <= 1 || geometry.sharing == Sharing::any;
}

const plan::Algorithm* fixed(const plan::Algorithm* named, const plan::Team& team,
                             const layout::Geometry& geometry) noexcept {
  if (named == nullptr || may_share_units(team, geometry)) return named;
  const bool right = must_keep_writers(team, geometry) ? named->keeps_writers : named->owns_blocks;
  return right ? named : nullptr;
}

const plan::Algorithm& exchanging(const plan::Team& team, const layout::Geometry& geometry) {
  return named(must_keep_writers(team, geometry) ? "cyclic" : "two_phase");
}

const plan::Algorithm& decide(const plan::Crowd& crowd, const plan::Team& team,
                              const layout::Geometry& geometry) {
  const bool alone = may_share_units(team, geometry) && !is_worth_sharing(crowd);
  return alone ? named("individual") : exchanging(team, geometry);
}

const plan::Algorithm& decide_reading(const plan::Crowd& crowd, const plan::Team& team,
                                      const layout::Geometry& geometry) {
  const bool alone = !must_keep_writers(team, geometry) && !is_worth_sharing(crowd);
  return alone ? named("individual") : exchanging(team, geometry);
}

const plan::Algorithm* fixed_reading(const plan::Algorithm* named, const plan::Team& team,
                                     const layout::Geometry& geometry) noexcept {
  return must_keep_writers(team, geometry) ? fixed(named, team, geometry) : named;
}

}  // namespace penstock::engine
