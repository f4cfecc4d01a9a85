// The end of a process whose worker hangs.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include "record.hpp"
#include "run.hpp"

namespace penstock::measure {

void give_up(const Program& program, const Parameters& parameters, const Place& place,
             const Hang& hang) {
  using namespace std::chrono_literals;
  if (place.rank != 0) {
    std::this_thread::sleep_for(5s);
    ::_exit(kFailed);
  }
  char text[160];
  std::snprintf(text, sizeof text, "not back after %.1f s%s: given up (--patience)", hang.seconds,
                std::strcmp(hang.where, "barrier") == 0
                    ? ": another worker does not come back from its call"
                    : "");
  std::vector<Record> records(size_t(place.ranks * place.threads));
  records[size_t(hang.thread)].failure =
      Failure{hang.where, Error{ErrorClass::communication, 0, hang.where, text}};
  const Json line = line_of(program, parameters, place, 0, records, std::nullopt, "given up");
  std::printf("%s\n", line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  std::fflush(stdout);
  ::_exit(kFailed);
}

}  // namespace penstock::measure
