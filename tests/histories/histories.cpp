// Plays histories of MPI-IO calls: drawn from seeds, or one from a file. A plain MPI program, run
// alone, where it says whether the model of histories is right, and under Penstock.
//
//   histories --dir=DIR [--seeds=N] [--first-seed=N] [--skip=SEED,SEED,...]
//   histories --dir=DIR --history=FILE [--repeat=N]
//   histories --print=SEED            what the seed means, for as many ranks as there are
//   ... --holes=undefined             bytes that nobody wrote may be anything
#include <cstdio>
#include <fstream>
#include <iterator>
#include <sstream>

#include "check.hpp"
#include "draw.hpp"
#include "play.hpp"

namespace suite {
namespace {

History read_history(const std::string& path) {
  std::ifstream file(path);
  return parse_history({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
}

void play_file(Report& report, const std::string& path, int repeat, const Stage& stage) {
  const History history = read_history(path);
  if (history.ranks != report.ranks()) {
    std::fprintf(stderr, "histories: %s is for %d ranks\n", path.c_str(), history.ranks);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  report.begin("histories --history=" + path);
  for (int i = 0; i < repeat; ++i) play(report, history, stage, "history");
}

void play_seeds(Report& report, uint64_t first, uint64_t count, const std::string& skip,
                const Stage& stage) {
  for (uint64_t seed = first; seed < first + count; ++seed) {
    if (("," + skip + ",").find("," + std::to_string(seed) + ",") != std::string::npos) continue;
    report.begin("seed " + std::to_string(seed));
    play(report, draw_history(seed, report.ranks()), stage, "seed-" + std::to_string(seed));
  }
}

}  // namespace
}  // namespace suite

int main(int argc, char** argv) {
  using namespace suite;
  MPI_Init(&argc, &argv);
  Report report(MPI_COMM_WORLD);
  const auto word = [&](const char* name, const char* fallback) {
    return option(argc, argv, name, fallback);
  };
  const Stage stage{word("dir", "."), word("holes", "zero") == "zero"};
  int code = 0;
  if (const std::string seed = word("print", ""); !seed.empty()) {
    if (report.rank() == 0)
      std::fputs(to_text(draw_history(std::stoull(seed), report.ranks())).c_str(), stdout);
  } else {
    if (const std::string history = word("history", ""); !history.empty())
      play_file(report, history, std::stoi(word("repeat", "1")), stage);
    else
      play_seeds(report, std::stoull(word("first-seed", "1")), std::stoull(word("seeds", "10")),
                 word("skip", ""), stage);
    code = report.finish();
  }
  MPI_Finalize();
  return code;
}
