// Threads beside the measured ones: signals are for the program's own threads, and the core that a
// launcher bound the rank to is for its work.
#pragma once

#include <functional>
#include <thread>

namespace penstock::measure {

std::thread helper_thread(std::function<void()> work);

}  // namespace penstock::measure
