// Sync policies: what is pushed to the device beyond what the program asks for.
// They only add; MPI_File_sync always means "on the device".
#pragma once

#include <span>
#include <string_view>

#include "base/error.hpp"
#include "io/mechanism.hpp"

namespace penstock::io {

struct SyncPolicy {
  std::string_view name;
  std::string_view summary;
  bool pushes = false;  // leaves everything on the device at close
  // At close, before the descriptor is closed. An error is reported by close on every rank.
  Result<void> (*at_close)(MechanismFile&) = nullptr;
};

std::span<const SyncPolicy* const> sync_policies();         // in the order of sync_policies.def
const SyncPolicy* find_sync_policy(std::string_view name);  // nullptr when there is none

}  // namespace penstock::io
