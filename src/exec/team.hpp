// The ranks of a communicator, as plans know them.
#pragma once

#include "comm/comm.hpp"
#include "plan/plan.hpp"

namespace penstock::exec {

inline plan::Team team_of(const comm::Comm& comm) noexcept {
  return {comm.size(), comm.nodes(), comm.cores_per_node(), comm.turn()};
}

}  // namespace penstock::exec
