// Teams of MPI ranks and their threads: built once per binary interface of MPI libraries.
#include <penstock/penstock_mpi.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "capi/handles.hpp"
#include "capi/status.hpp"
#include "comm/mpi_ask.hpp"
#include "comm/mpi_hybrid_comm.hpp"
#include "comm/mpi_other_nodes.hpp"

namespace penstock::capi {
namespace {

// What can be said before ranks can meet at all; MPI's own calls would end the job over it.
Result<void> can_meet(MPI_Comm comm) {
  if (!comm::mpi_is_running())
    return tl::unexpected(
        argument_error("penstock_team_mpi", "must be called between MPI_Init and MPI_Finalize"));
  if (comm == MPI_COMM_NULL)
    return tl::unexpected(argument_error("penstock_team_mpi", "comm must not be MPI_COMM_NULL"));
  if (comm::is_inter(comm))
    return tl::unexpected(
        argument_error("penstock_team_mpi", "comm must not be an inter-communicator"));
  return {};
}

int make(MPI_Comm comm, int threads, penstock_team** team) {
  if (team == nullptr) return failed(argument_error("penstock_team_mpi", "team must not be NULL"));
  *team = nullptr;
  if (auto r = can_meet(comm); !r) return failed(r);
  auto workers = comm::make_hybrid_team(comm, threads);
  if (!workers) return failed(workers.error());
  *team = make_team(*std::move(workers));
  const int nodes = (*team)->ranks.front().comm->nodes();
  (*team)->other_nodes =
      comm::may_have_other_nodes(comm::size_in(comm), nodes,
                                 [](const char* name) -> const char* { return std::getenv(name); });
  (*team)->ranks_elsewhere = comm::size_in(MPI_COMM_WORLD) - comm::size_in(comm);
  return 0;
}

}  // namespace
}  // namespace penstock::capi

extern "C" int penstock_team_mpi(MPI_Comm comm, int threads, penstock_team** team) {
  using namespace penstock::capi;
  return guarded("penstock_team_mpi", [&] { return make(comm, threads, team); });
}
