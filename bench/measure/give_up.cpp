// The end of a process whose worker hangs.
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "record.hpp"
#include "run.hpp"

namespace penstock::measure {

namespace {

std::string what_hangs(const Hang& hang) {
  char text[160];
  std::snprintf(text, sizeof text, "not back after %.1f s%s: given up (--patience)", hang.seconds,
                std::strcmp(hang.where, "barrier") == 0
                    ? ": another worker does not come back from its call"
                    : "");
  return text;
}

[[noreturn]] void leave_it_to_rank_0(const Program& program, const Place& place, const Hang& hang) {
  std::fprintf(stderr, "%s: rank %d, thread %d, %s: %s\n", program.name.c_str(), place.rank,
               hang.thread, hang.where, what_hangs(hang).c_str());
  ::_exit(kFailed);
}

}  // namespace

double patience_of(const Parameters& parameters, int rank) {
  constexpr double kMomentS = 5;
  const double asked_s = parameters.patience_s;
  return rank == 0 || asked_s == 0 ? asked_s : 2 * asked_s + kMomentS;
}

void give_up(const Program& program, const Parameters& parameters, const Place& place,
             const Hang& hang) {
  if (place.rank != 0) leave_it_to_rank_0(program, place, hang);
  std::vector<Record> records(size_t(place.ranks * place.threads));
  records[size_t(hang.thread)].failure =
      Failure{hang.where, Error{ErrorClass::communication, 0, hang.where, what_hangs(hang)}};
  const Json line = line_of(program, parameters, place, 0, records, std::nullopt, "given up");
  std::printf("%s\n", line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  std::fflush(stdout);
  ::_exit(kFailed);
}

}  // namespace penstock::measure
