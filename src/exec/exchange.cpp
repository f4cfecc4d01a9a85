// The list of exchanges.
#include "exec/exchange.hpp"

#include <array>

namespace penstock::exec {
namespace {

constexpr int64_t kSharedCycleBytes = int64_t{1} << 20;
// Of a node. For up to 64 writers a message may then be 1 MiB.
constexpr int64_t kOutboxBytes = int64_t{64} << 20;

constexpr Exchange kMessages{.name = "messages",
                             .summary = "messages between any two ranks",
                             .shares_pages = false,
                             .takes_pack = true};
constexpr Exchange kShm{.name = "shm",
                        .summary = "inside a node straight into the writer's page in shared memory",
                        .shares_pages = true};
constexpr Exchange kNodeLeaders{.name = "node_leaders",
                                .summary = "as shm, and few large messages between nodes",
                                .shares_pages = true,
                                .outbox_bytes = kOutboxBytes};

const Exchange& messages_exchange() { return kMessages; }
const Exchange& shm_exchange() { return kShm; }
const Exchange& node_leaders_exchange() { return kNodeLeaders; }

}  // namespace

std::span<const Exchange* const> exchanges() {
  static const std::array kAll = {
#define PENSTOCK_EXCHANGE(name) &name##_exchange(),
#include "exec/exchanges.def"
#undef PENSTOCK_EXCHANGE
  };
  return kAll;
}

const Exchange* find_exchange(std::string_view name) {
  for (const Exchange* e : exchanges())
    if (e->name == name) return e;
  return nullptr;
}

int64_t cycle_for(int64_t asked_bytes, const plan::Algorithm& algorithm, const Exchange* exchange,
                  const plan::Team& team) noexcept {
  const bool shares =
      exchange != nullptr && exchange->shares_pages && algorithm.exchanges && !algorithm.scatters;
  return asked_bytes == 0 && shares && team.nodes == 1 && team.ranks > 1 ? kSharedCycleBytes
                                                                         : asked_bytes;
}

}  // namespace penstock::exec
