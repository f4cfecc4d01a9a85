// Ranks that are threads of one process: for tests, the bench and the C API.
#pragma once

#include <functional>
#include <memory>

#include "comm/comm.hpp"

namespace penstock::comm {

struct ThreadTeamOptions {
  int nodes = 1;  // pretend that the ranks live on this many nodes, in consecutive blocks
};

// Runs body(comm) on `ranks` threads and joins them. `body` must not throw.
void run_thread_team(int ranks, const std::function<void(Comm&)>& body,
                     const ThreadTeamOptions& options = {});

}  // namespace penstock::comm
