// penstock-measure-mpich, -openmpi, -abi: workers are MPI ranks, or threads of them.
#include <mpi.h>

#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "comm/mpi_comm.hpp"
#include "comm/mpi_hybrid_comm.hpp"
#include "parameters.hpp"
#include "route_mpi.hpp"
#include "run.hpp"

namespace penstock::measure {
namespace {

// "MPICH 4.0.2", "Open MPI 4.1.4": the beginning of what the library says of itself.
std::string library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  std::string words(text, size_t(length));
  words = words.substr(0, words.find('\n'));
  words = words.substr(0, words.find(','));
  if (const size_t colon = words.find("Version:"); colon != std::string::npos) {
    const size_t begin = words.find_first_not_of(" \t", colon + 8);
    words = words.substr(0, words.find(' ')) + " " +
            (begin == std::string::npos ? "" : words.substr(begin));
  }
  if (words.rfind("Open MPI v", 0) == 0) words.erase(9, 1);
  while (!words.empty() && (words.back() == ' ' || words.back() == '\t')) words.pop_back();
  return words;
}

// One communicator per thread, so that threads of different numbers never meet in one call.
Communicators make_communicators(int threads) {
  Communicators c;
  for (int t = 0; t < threads; ++t) {
    MPI_Comm shared, node;
    MPI_Comm_dup(MPI_COMM_WORLD, &shared);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    c.shared.push_back(shared);
    c.per_node.push_back(node);
  }
  return c;
}

void free(Communicators& c) {
  for (MPI_Comm& comm : c.shared) MPI_Comm_free(&comm);
  for (MPI_Comm& comm : c.per_node) MPI_Comm_free(&comm);
}

Result<std::vector<std::unique_ptr<comm::Comm>>> make_team(int threads) {
  if (threads > 1) return comm::make_hybrid_team(MPI_COMM_WORLD, threads);
  auto alone = comm::make_mpi_comm(MPI_COMM_WORLD);
  if (!alone) return tl::unexpected(alone.error());
  std::vector<std::unique_ptr<comm::Comm>> team;
  team.push_back(*std::move(alone));
  return team;
}

int run_rank(const Program& program, const Parameters& p, int rank, int ranks) {
  auto team = make_team(p.threads);
  if (!team) {
    if (rank == 0)
      std::fprintf(stderr, "%s: --threads %d: %s\n", program.name.c_str(), p.threads,
                   team.error().message().c_str());
    return kWrongUsage;
  }
  std::vector<Pulse> pulses(team->size());
  const Watchdog watchdog(pulses, patience_of(p, rank), [&](const Hang& hang) {
    give_up(program, p, Place{ranks, p.threads, rank, 0, nullptr}, hang);
  });
  std::vector<int> codes(team->size(), kFailed);
  const auto work = [&](int thread) {
    const Place place{ranks, p.threads, rank, thread, &pulses[size_t(thread)]};
    codes[size_t(thread)] = run_worker(program, p, *(*team)[size_t(thread)], place);
  };
  std::vector<std::thread> others;
  for (int t = 1; t < p.threads; ++t) others.emplace_back(work, t);
  work(0);
  for (std::thread& t : others) t.join();
  return codes.front();
}

int measure(const Program& named, const Parameters& p) {
  Program program = named;
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  program.mpi = library();
  program.flavour = PENSTOCK_FLAVOUR;
  Communicators communicators = make_communicators(p.threads);
  Turns turns(p.threads);
  if (p.threads > 1) communicators.turns = &turns;
  program.make_mpi_route = [&](const RouteRequest& r) { return make_mpi_route(r, communicators); };
  const int code = run_rank(program, p, rank, ranks);
  free(communicators);
  return code;
}

int say(FILE* stream, const std::string& prefix, const std::string& text, int code) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) std::fprintf(stream, "%s%s", prefix.c_str(), text.c_str());
  return code;
}

}  // namespace
}  // namespace penstock::measure

// The command line is read before MPI is initialised, because the threads decide the level; under
// a launcher every rank reads the same one, and rank 0 speaks.
int main(int argc, char** argv) {
  using namespace penstock::measure;
  const Program program{"penstock-measure-" PENSTOCK_FLAVOUR, "", PENSTOCK_FLAVOUR, nullptr};
  const Request request = read_command_line(program.name, Workers::mpi, argc, argv);
  const bool threaded = request.kind == Request::Kind::measure && request.parameters.threads > 1;
  int provided = 0;
  if (threaded)
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  else  // so that a launcher may ask for more
    MPI_Init(&argc, &argv);
  int code = kMeasured;
  if (request.kind == Request::Kind::print)
    code = say(stdout, "", request.text, kMeasured);
  else if (request.kind == Request::Kind::wrong)
    code = say(stderr, program.name + ": ", request.text + "\n", kWrongUsage);
  else
    code = measure(program, request.parameters);
  MPI_Finalize();
  return code;
}
