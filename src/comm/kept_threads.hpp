// Threads that stay when their work is done, for the next to have work: tests run thousands of
// teams, and under AddressSanitizer starting a thread costs more than most of them do.
#pragma once

#include <functional>

namespace penstock::comm {

// Runs body(0) to body(count - 1), each on a thread of its own, all at once, and returns when they
// have. `body` must not throw; it may call this itself.
void run_on_threads(int count, const std::function<void(int)>& body);

}  // namespace penstock::comm
