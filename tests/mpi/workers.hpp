// The cases of the program `workers`, and the teams that they run on.
#pragma once

#include <functional>
#include <string>

#include "check.hpp"
#include "comm/comm.hpp"

namespace workers {

using namespace penstock;
using comm::Comm;
using suite::Report;

struct Setup {
  std::string directory;
  int threads = 1;
  int nodes = 1;
  int first_seed = 0, seeds = 10;  // of random views
};

using Body = std::function<void(Comm&, Report&)>;

// `body` on each of this rank's workers; what they expected becomes the rank's.
void on_team(const Setup& setup, Report& report, const Body& body);

// What Comm promises (comm_cases.cpp).
void contract(const Setup& setup, Report& report);
void nodes(const Setup& setup, Report& report);
void kept(const Setup& setup, Report& report);
void refusals(const Setup& setup, Report& report);
void single(const Setup& setup, Report& report);
void slots(const Setup& setup, Report& report);
void no_slots(const Setup& setup, Report& report);

// What is built on it: the pipeline, what its calls cost, turns (pipeline_cases.cpp).
void conformance(const Setup& setup, Report& report);
void counts(const Setup& setup, Report& report);
void turns(const Setup& setup, Report& report);

}  // namespace workers
