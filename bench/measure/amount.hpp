// How many bytes each worker that computes writes in an iteration, and what of it is not as asked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "parameters.hpp"
#include "pattern.hpp"

namespace penstock::measure {

// Of `workers`, one of which may only write: it leaves its share to the others, as benson-2003
// does. Whatever the strategy, the same total, as far as whole chunks of memory make it up.
// REQUIRES a worker that computes.
Amount amount_of(const Parameters& p, int workers);

// For people.
std::vector<std::string> notes_of(const Parameters& p, int workers, const Amount& amount,
                                  const Part& part);

}  // namespace penstock::measure
