// Histories drawn from a number, so that every rank draws the same one.
#pragma once

#include "history.hpp"

namespace suite {

History draw_history(uint64_t seed, int ranks);

}  // namespace suite
