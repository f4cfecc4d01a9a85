// The token is an empty message: that it came is all that it says.
#include "exec/turns.hpp"

#include "exec/abandon.hpp"

namespace penstock::exec {
namespace {

constexpr int kTurnTag = 3;

}  // namespace

void Turns::await(int64_t round) {
  const int64_t before = turn(round) - at_once_;
  if (before < 0) return;
  transfers_.receive(int(before % ranks_), kTurnTag, {});
  while (const auto event = next_or_abandon(transfers_))
    if (event->kind == comm::Event::Kind::received) return;
}

void Turns::pass(int64_t round) {
  const int64_t after = turn(round) + at_once_;
  if (after >= rounds_ * ranks_) return;
  transfers_.send(int(after % ranks_), kTurnTag, {});
  ++messages_;
}

}  // namespace penstock::exec
