// One run, one sample: prepares, measures, drains, checks, and prints the line of JSON.
#pragma once

#include <string>

#include "comm/comm.hpp"
#include "parameters.hpp"
#include "route.hpp"
#include "watchdog.hpp"

namespace penstock::measure {

// What differs between the programs.
struct Program {
  std::string name;     // "penstock-measure"
  std::string mpi;      // "MPICH 4.0.2"; empty without MPI
  std::string flavour;  // "mpich"
  MakeRoute make_mpi_route;
};

struct Place {  // of a worker
  int ranks = 1, threads = 1, rank = 0, thread = 0;
  Pulse* pulse = nullptr;
};

enum ExitCode { kMeasured = 0, kFailed = 1, kWrongUsage = 2 };

// Collective over all workers. The same exit code on all; worker 0 has printed.
int run_worker(const Program& program, const Parameters& parameters, comm::Comm& team,
               const Place& place);

// How long a rank's worker may be in one call; 0: for ever. Rank 0 may have begun to wait for
// another by as much later, and tells of it.
double patience_of(const Parameters& parameters, int rank);

// What a process does whose worker hangs: the one with worker 0 prints a line that says so; the
// others say on stderr where they hang. Then it ends, and the launcher ends the rest.
[[noreturn]] void give_up(const Program& program, const Parameters& parameters, const Place& place,
                          const Hang& hang);

}  // namespace penstock::measure
