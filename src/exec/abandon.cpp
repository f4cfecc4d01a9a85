#include "exec/abandon.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <utility>

#include "comm/borrow.hpp"

namespace penstock::exec {
namespace {

class Heard final : public comm::Borrowed {
 public:
  using Borrowed::Borrowed;
  Result<void> all_max(std::span<int64_t> values) override {
    or_abandon(Borrowed::all_max(values));
    return {};
  }
};

std::atomic<int (*)()> may_speak = nullptr;

bool speaks() {
  int (*const may)() = may_speak;
  return may == nullptr || may() != 0;
}

// Without a message() of its own: there may be no memory for it.
void say(const Error& error) {
  std::fprintf(stderr,
               "penstock: ranks can no longer understand each other, ending the job: %s: %s%s%s\n",
               error.operation.c_str(), error.sys_errno != 0 ? std::strerror(error.sys_errno) : "",
               error.sys_errno != 0 && !error.detail.empty() ? ": " : "", error.detail.c_str());
}

}  // namespace

void abandon_speaks_if(int (*may)()) noexcept { may_speak = may; }

void abandon(const Error& error) {
  if (speaks()) say(error);
  std::abort();
}

std::optional<comm::Event> next_or_abandon(comm::Transfers& transfers) {
  const std::optional<comm::Event> event = transfers.next();
  or_abandon(transfers.status());
  return event;
}

Result<void> agree_or_abandon(comm::Comm& comm, Result<void> mine) {
  Heard heard(comm);
  return comm::agree(heard, std::move(mine));
}

}  // namespace penstock::exec
