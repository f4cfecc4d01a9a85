// The end of a job whose ranks can no longer understand each other.
#pragma once

#include <exception>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "comm/comm.hpp"

namespace penstock::exec {

// A peer's message cannot be understood, or a rank cannot send what others wait for: nobody could
// tell them any more, so the job ends here, with a message.
[[noreturn]] void abandon(const Error& error);
// Whether the message may be printed: what descriptor 2 is by then may be a file of the program's.
// Without this it is. `may` must outlive the process's last call.
void abandon_speaks_if(int (*may)()) noexcept;

// What all ranks were to do or to learn together, and this one did not: the others go on without
// it, and wait for it at the next such place.
inline void or_abandon(const Result<void>& together) {
  if (!together) abandon(together.error());
}

// Collective. As comm::agree(), where a rank that cannot learn what was agreed on ends the job.
Result<void> agree_or_abandon(comm::Comm& comm, Result<void> mine);

// Collective. What a collective call made, where it did so on all ranks.
template <class T>
Result<T> on_all_or_abandon(comm::Comm& comm, Result<T> made) {
  const Result<void> agreed =
      agree_or_abandon(comm, made ? Result<void>() : tl::unexpected(made.error()));
  if (!agreed) return tl::unexpected(agreed.error());
  return made;
}

// The next event. A message that failed ends the job: what it brought may be anything, and others
// wait for what depends on it.
std::optional<comm::Event> next_or_abandon(comm::Transfers& transfers);

// What a rank does together with others: out of memory in the middle, they would wait for messages
// that never come.
template <class F>
auto or_abandon(const char* operation, F&& f) -> decltype(f()) {
  try {
    return std::forward<F>(f)();
  } catch (const std::exception& e) {
    abandon(Error{ErrorClass::no_memory, 0, operation, e.what()});
  }
}

}  // namespace penstock::exec
