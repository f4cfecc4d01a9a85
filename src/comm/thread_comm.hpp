// Ranks that are threads of one process: for tests, the bench and the C API.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "comm/comm.hpp"

namespace penstock::comm {

struct ThreadTeamOptions {
  int nodes = 1;               // pretend that the ranks live on this many nodes
  int turn = 0;                // dealt so (base/dealing.hpp)
  bool used_segments = false;  // pretend that shared memory is what an earlier file has left
};

// The communicators of `ranks` threads, by rank: give each to the thread that is to be this rank.
std::vector<std::unique_ptr<Comm>> make_thread_team(int ranks,
                                                    const ThreadTeamOptions& options = {});

// Runs body(comm) on `ranks` threads and joins them. `body` must not throw.
void run_thread_team(int ranks, const std::function<void(Comm&)>& body,
                     const ThreadTeamOptions& options = {});

}  // namespace penstock::comm
