#include "exec/abandon.hpp"

#include <cstdio>
#include <cstdlib>

namespace penstock::exec {

void abandon(const Error& error) {
  std::fprintf(stderr, "penstock: ranks can no longer understand each other, ending the job: %s\n",
               error.message().c_str());
  std::abort();
}

}  // namespace penstock::exec
