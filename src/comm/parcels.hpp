// Messages that their receiver does not expect: from anybody, of any size up to a GiB, as they
// come. With the barrier in two halves a sparse exchange costs what is sent and no more (Hoefler,
// Siebert and Lumsdaine, PPoPP 2010: NBX): send, receive until all one's own are taken, arrive,
// receive until all have arrived.
//
// Parcels of one (sender, receiver) come in order. By one thread at a time, which may be any where
// by_any_thread() says so. Must not outlive the communicator's ranks; destroyed by all of them,
// with nothing under way, or with an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/error.hpp"

namespace penstock::comm {

struct Parcel {
  int peer = 0;  // who sent it, or whom it was sent to
  std::vector<std::byte> bytes;
};

class Parcels {
 public:
  virtual ~Parcels() = default;

  // Whether a thread may use it while another makes calls to the communicator or to MPI.
  virtual bool by_any_thread() const noexcept = 0;

  // Starts and returns at once.
  virtual void send(int to, std::vector<std::byte> bytes) = 0;
  // One that its receiver has taken, given back, each once; or nothing. Does not wait.
  virtual std::optional<Parcel> delivered() = 0;
  // All that were sent and not yet given back.
  virtual std::vector<Parcel> take_back() = 0;
  virtual int64_t sent() const noexcept = 0;  // how many so far
  // Whether the first so many of these were given back.
  virtual bool are_delivered(int64_t first) const noexcept = 0;
  // The next one that has come, or nothing. Does not wait for any to come.
  virtual std::optional<Parcel> receive() = 0;

  // A barrier in two halves; the second does not wait.
  virtual void arrive() = 0;
  virtual bool all_have_arrived() = 0;

  // The first failure of any of these; after it nothing more is to be expected.
  virtual Result<void> status() const = 0;
};

}  // namespace penstock::comm
