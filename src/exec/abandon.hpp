// The end of a job whose ranks can no longer understand each other.
#pragma once

#include "base/error.hpp"

namespace penstock::exec {

// A peer's message cannot be understood, or a rank cannot send what others wait for: nobody could
// tell them any more, so the job ends here, with a message.
[[noreturn]] void abandon(const Error& error);

}  // namespace penstock::exec
