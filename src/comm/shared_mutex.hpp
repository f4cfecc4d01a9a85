// A node lock in memory that processes share: a robust mutex at the beginning of a segment
// (comm/shared_segment.hpp), whose names it uses.
#pragma once

#include <memory>
#include <string>

#include "comm/node_lock.hpp"

namespace penstock::comm {

// Makes it and opens it. An error when the name is taken or there is no room in /dev/shm.
Result<std::shared_ptr<NodeLock>> make_shared_mutex(const std::string& name);
Result<std::shared_ptr<NodeLock>> open_shared_mutex(const std::string& name);

}  // namespace penstock::comm
