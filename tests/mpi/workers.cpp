// Penstock's communicators on MPI ranks, and on threads of MPI ranks: their contract, the
// pipeline's conformance on them, turns between real processes.
//   workers CASE --dir=DIR --threads=N --nodes=N --first-seed=N --seeds=N
#include "workers.hpp"

#include <thread>
#include <vector>

#include "comm/mpi_hybrid_comm.hpp"

namespace workers {
namespace {

// Runs `body` as each of this rank's workers.
void as_workers(std::vector<std::unique_ptr<Comm>>& team, Report& report, const Body& body) {
  std::vector<Report> reports(team.size(), Report(MPI_COMM_WORLD));
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < team.size(); ++i)
    threads.emplace_back([&, i] { body(*team[i], reports[i]); });
  threads.clear();
  for (const Report& r : reports) report.absorb(r);
}

constexpr struct {
  const char* name;
  void (*run)(const Setup&, Report&);
} kCases[] = {
    {"contract", contract},       {"nodes", nodes},   {"refusals", refusals}, {"single", single},
    {"conformance", conformance}, {"counts", counts}, {"turns", turns},       {"slots", slots},
    {"no_slots", no_slots},       {"kept", kept}};

int run(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  const Setup setup{suite::option(argc, argv, "dir", "."),
                    std::stoi(suite::option(argc, argv, "threads", "1")),
                    std::stoi(suite::option(argc, argv, "nodes", "1")),
                    std::stoi(suite::option(argc, argv, "first-seed", "0")),
                    std::stoi(suite::option(argc, argv, "seeds", "10"))};
  Report report(MPI_COMM_WORLD);
  report.begin(name);
  bool known = false;
  for (const auto& one : kCases)
    if (name == one.name) one.run(setup, report), known = true;
  report.expect(known, "a case is called \"" + name + "\"");
  return report.finish();
}

}  // namespace

void on_team(const Setup& setup, Report& report, const Body& body) {
  auto team = comm::make_hybrid_team(MPI_COMM_WORLD, setup.threads);
  if (!report.expect(team.has_value(), "a team")) return;
  as_workers(*team, report, body);
}

}  // namespace workers

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  const bool alone = name == "single" || name.ends_with("slots");
  int provided = 0;
  MPI_Init_thread(&argc, &argv, alone ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE, &provided);
  const int code = workers::run(argc, argv);
  MPI_Finalize();
  return code;
}
