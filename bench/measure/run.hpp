// One run, one sample: prepares, measures, drains, checks, and prints the line of JSON.
#pragma once

#include <string>

#include "comm/comm.hpp"
#include "parameters.hpp"
#include "route.hpp"

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
};

enum ExitCode { kMeasured = 0, kFailed = 1, kWrongUsage = 2 };

// Collective over all workers. The same exit code on all; worker 0 has printed.
int run_worker(const Program& program, const Parameters& parameters, comm::Comm& team,
               const Place& place);

}  // namespace penstock::measure
