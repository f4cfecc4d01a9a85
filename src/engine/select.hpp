// The rule that chooses the algorithm of one collective write when the method says "auto".
#pragma once

#include "layout/geometry.hpp"
#include "plan/algorithm.hpp"

namespace penstock::engine {

// Pure: every rank decides alike. Several nodes on a file system whose units a node must own alone
// shuffle their bytes, as exchanging() says; ranks that do not interleave write for themselves.
const plan::Algorithm& decide(const plan::Crowd& crowd, const plan::Team& team,
                              const layout::Geometry& geometry);

// Which one shuffles: with a unit's writer the same in every call, where a node that took it over
// from another would lose bytes.
const plan::Algorithm& exchanging(const plan::Team& team, const layout::Geometry& geometry);

// The algorithm of every collective write of a file, `named` by its method. nullptr where decide()
// chooses for each: "auto", or one by which two nodes would write a unit where that loses bytes.
const plan::Algorithm* fixed(const plan::Algorithm* named, const plan::Team& team,
                             const layout::Geometry& geometry) noexcept;

// The same of collective reads: who takes locks for a unit reads what any node has written, so only
// where a node may keep a unit in its cache is that node to read it, too.
const plan::Algorithm& decide_reading(const plan::Crowd& crowd, const plan::Team& team,
                                      const layout::Geometry& geometry);
const plan::Algorithm* fixed_reading(const plan::Algorithm* named, const plan::Team& team,
                                     const layout::Geometry& geometry) noexcept;

// May ranks on several nodes write their own bytes wherever they lie?
bool may_share_units(const plan::Team& team, const layout::Geometry& geometry) noexcept;

}  // namespace penstock::engine
