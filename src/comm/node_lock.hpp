// A lock that the ranks of one node share, whatever files they have open: syncs take turns by it.
#pragma once

#include <memory>

#include "base/gate.hpp"

namespace penstock::comm {

// Waiting makes no MPI call, so the holder must not wait for another rank while inside. It outlives
// the communicator that made it, and needs no MPI to be destroyed. A holder that dies inside leaves
// it to the next.
class NodeLock : public Gate {};

// Of the threads of this process alone.
std::shared_ptr<NodeLock> make_thread_lock();

}  // namespace penstock::comm
