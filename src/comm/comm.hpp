// One interface over MPI ranks and over threads, so that the same plan runs on
// both. Collective calls must be made by every rank in the same order; they are
// used a fixed number of times per write, never inside a cycle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "comm/node_lock.hpp"
#include "comm/parcels.hpp"
#include "comm/shared_segment.hpp"
#include "comm/slots.hpp"

namespace penstock::comm {

// What next() reports.
struct Event {
  enum class Kind : uint8_t { sent, received } kind;
  int number;  // as send() or receive() returned it
};

// Equal pieces of memory at equal distances: what an MPI datatype says in three numbers.
struct Strided {
  const std::byte* first = nullptr;
  int64_t block_bytes = 0, stride_bytes = 0, count = 0;

  int64_t bytes() const noexcept { return block_bytes * count; }
};

// A set of point-to-point messages in flight. Buffers belong to the caller and must stay valid
// until next() or finish() has reported the message. Messages of one (sender, receiver, tag) arrive
// in order. Tags are 0..255.
class Transfers {
 public:
  virtual ~Transfers() = default;

  // All start and return at once, with a small non-negative number that names the message until
  // its event has been reported; numbers are reused after that. Failures are told by status() and
  // finish().
  virtual int send(int to, int tag, std::span<const std::byte> bytes) = 0;
  // The same message, of bytes that lie in pieces: nobody packs them first. REQUIRES fewer than
  // 2^31 bytes, in blocks that are not empty.
  virtual int send_strided(int to, int tag, const Strided& pieces) = 0;
  // The message must have exactly bytes.size() bytes, else a communication error is recorded.
  virtual int receive(int from, int tag, std::span<std::byte> bytes) = 0;

  // Waits until some message in flight is done and reports it, each once; nullopt when none is in
  // flight. Progresses everything. A failed message is reported like any other.
  virtual std::optional<Event> next() = 0;
  // Without waiting: an error of a message since the last finish(), of those that next() has
  // reported at the latest. What was received with it may be anything.
  virtual const Result<void>& status() const noexcept = 0;
  // Waits for all that is in flight. The worst error of all messages since the last finish().
  virtual Result<void> finish() = 0;
};

class Comm {
 public:
  virtual ~Comm() = default;

  virtual int rank() const noexcept = 0;
  virtual int size() const noexcept = 0;
  virtual int nodes() const noexcept = 0;           // nodes that the ranks live on
  virtual int cores_per_node() const noexcept = 0;  // usable, the smallest of any node
  // This rank's, 0 .. nodes() - 1, in the order of the nodes' lowest ranks.
  virtual int own_node() const noexcept = 0;
  // How the ranks are dealt to them (base/dealing.hpp).
  virtual int turn() const noexcept = 0;

  // Collective. all.size() == size() * mine.size(); rank i's bytes at i * mine.size().
  virtual Result<void> allgather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  // Collective, in place.
  virtual Result<void> all_max(std::span<int64_t> values) = 0;
  virtual Result<void> all_sum(std::span<int64_t> values) = 0;
  virtual Result<void> barrier() = 0;
  // Collective. Concatenates everybody's bytes on `root`, in rank order; empty elsewhere.
  virtual Result<std::vector<std::byte>> gather(std::span<const std::byte> mine, int root) = 0;

  // Collective. A new lock of the ranks of this rank's node, or the same class of error on all.
  virtual Result<std::shared_ptr<NodeLock>> node_lock() = 0;
  // Collective; the same on all ranks of a node. Memory that the ranks of this rank's node share,
  // or the same class of error on all.
  virtual Result<std::shared_ptr<SharedSegment>> shared_segment(const SegmentShape& shape) = 0;
  // Collective. The ranks of this rank's node, in their order here, or the same class of error on
  // all. The new communicator may outlive this one.
  virtual Result<std::unique_ptr<Comm>> split_by_node() = 0;

  // Collective (comm/parcels.hpp); the same class of error on all.
  virtual Result<std::unique_ptr<Parcels>> parcels() = 0;
  // Collective, with the same shape on all ranks (comm/slots.hpp); likewise.
  virtual Result<std::unique_ptr<Slots>> slots(const SlotsShape& shape) = 0;

  // Not collective. Must not outlive the communicator.
  virtual std::unique_ptr<Transfers> transfers() = 0;

  // Local. No file uses the communicator now: what it keeps for the next one takes less, and no
  // descriptor.
  virtual void rest() noexcept {}
};

// The same ranks without owning them, for who takes a communicator for itself. `comm` must outlive
// it.
std::unique_ptr<Comm> borrow(Comm& comm);

// Collective. As split_by_node(); where there is one node, all ranks without owning them.
Result<std::unique_ptr<Comm>> of_this_node(Comm& comm);

// Collective. The same class on every rank: the worst of all. The rank that failed keeps its own
// error when it is the worst; others get one that says a peer failed. Never skipped, never early.
Result<void> agree(Comm& comm, Result<void> mine);

}  // namespace penstock::comm
