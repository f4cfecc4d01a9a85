// What the opaque handles of penstock.h are.
#pragma once

#include <penstock/penstock.h>

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "comm/comm.hpp"
#include "engine/config.hpp"
#include "engine/file.hpp"
#include "io/probe.hpp"

// One rank. Its files borrow its communicator, so their collective calls come one after the other.
struct penstock_rank {
  penstock_team* team = nullptr;
  std::unique_ptr<penstock::comm::Comm> comm;
  std::vector<penstock_file*> files;  // that are open
};

// The ranks of a team that live in this process.
struct penstock_team {
  // What every file begins with. A configuration that is wrong is told by every open, where ranks
  // can agree on it.
  penstock::Result<penstock::engine::Config> config;
  std::vector<penstock_rank> ranks;  // never moved after the team is made
  std::atomic<int> open_files = 0;
  int ranks_elsewhere = 0;   // of the job, outside of the team's communicator
  bool other_nodes = false;  // where some of these may be
};

struct penstock_file {
  explicit penstock_file(penstock_rank& of) : rank(of) {
    rank.files.push_back(this);
    ++rank.team->open_files;
  }
  penstock_file(const penstock_file&) = delete;
  ~penstock_file() {
    file.reset();  // it borrows the rank's communicator
    std::erase(rank.files, this);
    if (--rank.team->open_files == 0) rank.comm->rest();
  }

  penstock_rank& rank;
  std::optional<penstock::io::FileIdentity> id;  // nullopt: not known
  std::unique_ptr<penstock::engine::File> file;
};

namespace penstock::capi {

// Ranks that have a communicator each become a team of this process.
penstock_team* make_team(std::vector<std::unique_ptr<comm::Comm>> comms);
// Of all teams that this process has: who else may have a file open. The more, the less is certain.
int ranks_of_teams() noexcept;

}  // namespace penstock::capi
