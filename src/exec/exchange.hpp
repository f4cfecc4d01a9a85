// Exchanges: how bytes reach the writer. Each is a descriptor here and a line in exchanges.def;
// `none` is not among them: it is what algorithms do that send nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "plan/algorithm.hpp"

namespace penstock::exec {

// What a sender does with memory that is not contiguous: packs it into a message, or has the
// message take it from where it lies (an MPI datatype).
enum class Pack : uint8_t { copy, datatype };

struct Exchange {
  std::string_view name;
  std::string_view summary;
  // The ranks of a node fill the pages of its writers themselves; messages go between nodes only.
  bool shares_pages = false;
  bool takes_pack = false;  // Pack may be chosen
  // > 0: what the ranks of a node have for another node's writer is gathered in so many bytes of
  // shared memory at most, and one of them sends it.
  int64_t outbox_bytes = 0;
};

std::span<const Exchange* const> exchanges();          // in the order of exchanges.def
const Exchange* find_exchange(std::string_view name);  // nullptr when there is none

// A writer's cycle: `asked_bytes`, or where these are 0 what suits the exchange (nullptr:
// messages); 0: the algorithm's own default. Pages that all ranks of one node fill are small: they
// stay in cache between the one who fills and the one who writes, and writers wait for each other
// seldom, since pages are opened ahead. Pure: every rank computes the same.
int64_t cycle_for(int64_t asked_bytes, const plan::Algorithm& algorithm, const Exchange* exchange,
                  const plan::Team& team) noexcept;

}  // namespace penstock::exec
