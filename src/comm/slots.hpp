// Memory of each rank into which others put parcels without its help: one-sided communication. A
// rank asks an owner once for a slot, by an atomic counter, and then puts one parcel at a time
// there. The owner looks into its own memory, by any thread and without a call to MPI. An owner has
// a fixed number of slots, whatever the number of ranks; who comes when all are given gets none
// before reopen().
//
// Parcels of one (sender, owner) come in order. Nothing here waits for another rank, but free().
// One thread at a time; one that may not call MPI only what is said to be for any. Slots that are
// destroyed and were not freed leave their memory to the end of the job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "comm/parcels.hpp"

namespace penstock::comm {

struct SlotsShape {
  int slots = 1;             // of each rank
  int64_t parcel_bytes = 0;  // the most that one takes
};

enum class Way : uint8_t {
  open,    // a parcel may be put now
  busy,    // not yet
  closed,  // not before reopen()
};

class Slots {
 public:
  virtual ~Slots() = default;

  // --- As a sender ---
  // Asks for a slot where none was asked for. Looks again for about as long as a network needs.
  virtual Way way_to(int owner) = 0;
  // Starts and returns. REQUIRES that way_to() has just said that it is open.
  virtual void put(int owner, std::vector<std::byte> bytes) = 0;
  // One that its owner has released, given back, each once; or nothing.
  virtual std::optional<Parcel> released() = 0;
  // What was put there and is not yet given back; empty: nothing. Until the next call as a sender;
  // by any thread.
  virtual std::span<const std::byte> on_its_way_to(int owner) const = 0;
  // All that were put and not yet given back. Nothing may be put any more.
  virtual std::vector<Parcel> take_back() = 0;
  virtual bool used() const noexcept = 0;   // a slot was asked for since reopen()
  virtual bool quiet() const noexcept = 0;  // nothing is on its way, no question either

  // --- As an owner, by any thread ---
  // The next one that has come, or nothing. REQUIRES that the one before has been released.
  virtual std::optional<Parcel> receive() = 0;
  // Its sender may know that this rank has done what it was to do with it.
  virtual void release() = 0;

  // All slots are free again. REQUIRES that all ranks were quiet; none may use any before all have
  // done this.
  virtual void reopen() = 0;
  // Collective; the last call. REQUIRES that all ranks are quiet.
  virtual void free() = 0;

  // By any thread. The first failure of any of these; after it nothing more is to be expected.
  virtual Result<void> status() const = 0;
};

}  // namespace penstock::comm
