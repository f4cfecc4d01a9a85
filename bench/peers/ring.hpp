// A ring of file pages in memory that the ranks of one node share. Every rank copies its bytes
// straight to their place in a page; the last to arrive wakes the page's owner, who writes it and
// frees it for its next use. Nobody spins: ranks may outnumber cores.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace penstock::peers {

// A place in the ring at one of its uses: use u + 1 begins when use u was written.
struct Slot {
  int owner = 0;
  int number = 0;  // of the owner's
  uint32_t use = 0;
};

class Ring {
 public:
  // Collective over `node`. Every rank owns `slots` pages of `page_bytes` (a multiple of 4096); all
  // are touched. Not usable() when the memory cannot be had.
  Ring(MPI_Comm node, int slots, int64_t page_bytes);
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  bool usable() const noexcept { return base_ != nullptr; }
  std::byte* page(Slot slot) const noexcept;

  bool is_free(Slot slot) const noexcept;                     // for this use
  bool is_full(Slot slot, uint32_t arrivals) const noexcept;  // all that were owed have arrived
  // My bytes are in the page; the last of `arrivals` wakes the owner.
  void arrive(Slot slot, uint32_t arrivals) noexcept;
  // By the owner: written, or given up after an error.
  void release(Slot slot) noexcept;

  // Everybody has called it as often as I have.
  bool all_passed() const noexcept;
  void pass() noexcept;

  // Until `ready` is true. `serve` does work of one's own that has become possible, and tells
  // whether it did any.
  void wait(const std::function<bool()>& ready, const std::function<bool()>& serve) noexcept;

 private:
  struct Bell;
  struct State;
  State& state(Slot slot) const noexcept;
  Bell& bell(int rank) const noexcept;
  void ring(int rank) noexcept;
  void ring_all() noexcept;

  MPI_Win window_ = MPI_WIN_NULL;
  int rank_ = 0, ranks_ = 1, slots_ = 1;
  int spins_ = 0;
  uint32_t passes_ = 0;
  int64_t page_bytes_ = 0;
  std::byte* base_ = nullptr;
};

}  // namespace penstock::peers
