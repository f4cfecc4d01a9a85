// penstock-measure-threads: workers are threads, no MPI.
#include <cstdio>
#include <iostream>
#include <vector>

#include "comm/thread_comm.hpp"
#include "parameters.hpp"
#include "run.hpp"

int main(int argc, char** argv) {
  using namespace penstock::measure;
  const Program program{"penstock-measure-threads", "", "", nullptr};
  const Request request = read_command_line(program.name, Workers::threads, argc, argv);
  if (request.kind == Request::Kind::print) {
    std::cout << request.text;
    return kMeasured;
  }
  if (request.kind == Request::Kind::wrong) {
    std::cerr << program.name << ": " << request.text << "\n";
    return kWrongUsage;
  }
  const Parameters& p = request.parameters;
  std::vector<Pulse> pulses(size_t(p.threads));
  const Watchdog watchdog(pulses, p.patience_s, [&](const Hang& hang) {
    give_up(program, p, {.ranks = 1, .threads = p.threads}, hang);
  });
  std::vector<int> codes(size_t(p.threads), kFailed);
  penstock::comm::run_thread_team(p.threads, [&](penstock::comm::Comm& team) {
    const Place place{.ranks = 1,
                      .threads = p.threads,
                      .rank = 0,
                      .thread = team.rank(),
                      .pulse = &pulses[size_t(team.rank())]};
    codes[size_t(team.rank())] = run_worker(program, p, team, place);
  });
  return codes.front();
}
