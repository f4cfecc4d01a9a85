// A node lock in memory that processes share: a robust mutex in a page of /dev/shm. One process
// makes it under a name, the others of the node open it, and then the name is taken away: the page
// lives as long as somebody has it.
#pragma once

#include <memory>
#include <string>

#include "comm/node_lock.hpp"

namespace penstock::comm {

// A name under which nothing was made; it carries the user, the process and the time.
std::string unused_mutex_name();
// Makes it and opens it. An error when the name is taken or there is no room in /dev/shm.
Result<std::shared_ptr<NodeLock>> make_shared_mutex(const std::string& name);
Result<std::shared_ptr<NodeLock>> open_shared_mutex(const std::string& name);
// Nobody opens it any more. Harmless when there is none.
void forget_mutex_name(const std::string& name) noexcept;

}  // namespace penstock::comm
