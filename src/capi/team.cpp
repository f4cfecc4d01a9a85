// Teams of threads, and what all teams have in common.
#include <string>

#include "capi/handles.hpp"
#include "capi/status.hpp"
#include "comm/thread_comm.hpp"

namespace penstock::capi {
namespace {

constexpr int kMostThreads = 65536;

std::atomic<int> all_ranks = 0;

Result<penstock_team*> team_of_threads(int ranks) {
  if (ranks < 1 || ranks > kMostThreads)
    return tl::unexpected(argument_error(
        "penstock_team_threads",
        "ranks must be 1 to " + std::to_string(kMostThreads) + ", got " + std::to_string(ranks)));
  return make_team(comm::make_thread_team(ranks));
}

Result<penstock_rank*> rank_of(penstock_team& team, int index) {
  if (index < 0 || size_t(index) >= team.ranks.size())
    return tl::unexpected(argument_error(
        "penstock_team_rank", "index must be 0 to " + std::to_string(team.ranks.size() - 1) +
                                  ", the ranks of this process, got " + std::to_string(index)));
  return &team.ranks[size_t(index)];
}

Result<void> free_team(penstock_team* team) {
  if (team == nullptr) return {};
  if (const int open = team->open_files; open > 0)
    return tl::unexpected(
        argument_error("penstock_team_free",
                       std::to_string(open) + " files of the team are open: penstock_close"));
  all_ranks -= team->ranks.front().comm->size();
  delete team;
  return {};
}

}  // namespace

penstock_team* make_team(std::vector<std::unique_ptr<comm::Comm>> comms) {
  auto team = std::make_unique<penstock_team>();
  engine::Surroundings process = engine::this_process();
  process.reader = engine::Surroundings::Reader::c_api;
  team->config = engine::load_config(process);
  all_ranks += comms.front()->size();
  for (auto& comm : comms) team->ranks.push_back({team.get(), std::move(comm), {}});
  return team.release();
}

int ranks_of_teams() noexcept { return all_ranks; }

}  // namespace penstock::capi

using namespace penstock;
using namespace penstock::capi;

extern "C" {

int penstock_team_threads(int ranks, penstock_team** team) {
  return guarded("penstock_team_threads", [&] {
    if (team == nullptr)
      return failed(argument_error("penstock_team_threads", "team must not be NULL"));
    *team = nullptr;
    const Result<penstock_team*> made = team_of_threads(ranks);
    if (!made) return failed(made.error());
    *team = *made;
    return 0;
  });
}

int penstock_team_rank(penstock_team* team, int index, penstock_rank** rank) {
  return guarded("penstock_team_rank", [&] {
    if (team == nullptr || rank == nullptr)
      return failed(argument_error("penstock_team_rank", "team and rank must not be NULL"));
    *rank = nullptr;
    const Result<penstock_rank*> found = rank_of(*team, index);
    if (!found) return failed(found.error());
    *rank = *found;
    return 0;
  });
}

int penstock_rank_place(const penstock_rank* rank, int* number, int* ranks) {
  return guarded("penstock_rank_place", [&] {
    if (rank == nullptr)
      return failed(argument_error("penstock_rank_place", "rank must not be NULL"));
    if (number != nullptr) *number = rank->comm->rank();
    if (ranks != nullptr) *ranks = rank->comm->size();
    return 0;
  });
}

int penstock_team_free(penstock_team* team) {
  return guarded("penstock_team_free", [&] { return failed(free_team(team)); });
}
}
