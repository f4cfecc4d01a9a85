// Carries a history out by MPI-IO calls, and compares with the model what reads return, where
// pointers are, how large files are, and what plain pread finds whenever all have met.
#pragma once

#include <string>

#include "check.hpp"
#include "history.hpp"

namespace suite {

struct Stage {
  std::string directory;
  // Bytes that nobody wrote are zero; where not, the library alone may put into them what it likes.
  bool holes_are_zero = true;
};

// Collective. Files are made in the directory, and removed when they are right.
void play(Report& report, const History& history, const Stage& stage, const std::string& name);

}  // namespace suite
