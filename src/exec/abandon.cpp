#include "exec/abandon.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace penstock::exec {

void abandon(const Error& error) {
  // Without a message() of its own: there may be no memory for it.
  std::fprintf(stderr,
               "penstock: ranks can no longer understand each other, ending the job: %s: %s%s%s\n",
               error.operation.c_str(), error.sys_errno != 0 ? std::strerror(error.sys_errno) : "",
               error.sys_errno != 0 && !error.detail.empty() ? ": " : "", error.detail.c_str());
  std::abort();
}

}  // namespace penstock::exec
