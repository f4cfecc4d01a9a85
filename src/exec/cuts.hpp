// Where the cycles of a writer end, when only it can know (plan::Needs::cuts): it finds the cuts
// and tells those who send to it, once in a call and before the first cycle.
#pragma once

#include <memory>

#include "comm/comm.hpp"
#include "exec/peers.hpp"
#include "exec/pipeline.hpp"
#include "plan/plan.hpp"

namespace penstock::exec {

// Every rank of the plan must call it, with its own part (empty when it brings nothing) and who
// sends to it. The plan that knows what this rank needs.
Result<std::unique_ptr<const plan::Plan>> learn_cuts(std::unique_ptr<const plan::Plan> plan,
                                                     comm::Comm& comm, comm::Transfers& transfers,
                                                     const plan::Part& own,
                                                     const plan::Summary& summary,
                                                     const std::vector<Peer>& peers,
                                                     Traffic& traffic);

}  // namespace penstock::exec
