// The shared memory: bells (one per rank), states (one per page), then the pages. All counters are
// in memory shared between processes, so waiting is by futex(2), never std::atomic::wait.
#include "ring.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstring>
#include <ctime>

namespace penstock::peers {
namespace {

constexpr int64_t kLine = 64, kPage = 4096;
constexpr int kSpins = 200;  // a few microseconds, where every rank has a core
constexpr timespec kPatience = {0,
                                100000000};  // against nothing known: a lost wake would only cost

void sleep_on(std::atomic<uint32_t>& word, uint32_t seen) noexcept {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT, seen, &kPatience, nullptr, 0);
}

void wake(std::atomic<uint32_t>& word) noexcept {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

}  // namespace

struct alignas(kLine) Ring::Bell {
  std::atomic<uint32_t> rung{0};
  std::atomic<uint32_t> asleep{0};
  std::atomic<uint32_t> passes{0};
};

struct alignas(kLine) Ring::State {
  std::atomic<uint32_t> use{0};
  std::atomic<uint32_t> arrived{0};
};

Ring::Ring(MPI_Comm node, int slots, int64_t page_bytes) : slots_(slots), page_bytes_(page_bytes) {
  MPI_Comm_rank(node, &rank_);
  MPI_Comm_size(node, &ranks_);
  spins_ = ranks_ <= sysconf(_SC_NPROCESSORS_ONLN) ? kSpins : 0;
  const int64_t states = int64_t(ranks_) * slots;
  const int64_t head = round_up((ranks_ + states) * kLine, kPage);
  const int64_t bytes = head + states * page_bytes + kPage;
  void* mine = nullptr;
  if (MPI_Win_allocate_shared(rank_ == 0 ? bytes : 0, 1, MPI_INFO_NULL, node, &mine, &window_) !=
      MPI_SUCCESS)
    return;
  MPI_Aint size = 0;
  int unit = 1;
  void* all = nullptr;
  MPI_Win_shared_query(window_, 0, &size, &unit, &all);
  base_ = reinterpret_cast<std::byte*>(round_up(int64_t(all), kPage));
  if (rank_ == 0) std::memset(base_, 0, size_t(bytes - kPage));
  MPI_Barrier(node);
  for (int s = 0; s < slots; ++s)  // every process has its own page tables
    for (int r = 0; r < ranks_; ++r)
      for (int64_t i = 0; i < page_bytes; i += kPage)
        static_cast<void>(*static_cast<volatile std::byte*>(page({r, s, 0}) + i));
  MPI_Barrier(node);
}

Ring::~Ring() {
  if (window_ != MPI_WIN_NULL) MPI_Win_free(&window_);
}

Ring::Bell& Ring::bell(int rank) const noexcept {
  return *reinterpret_cast<Bell*>(base_ + rank * kLine);
}

Ring::State& Ring::state(Slot slot) const noexcept {
  return *reinterpret_cast<State*>(base_ + (ranks_ + slot.owner * slots_ + slot.number) * kLine);
}

std::byte* Ring::page(Slot slot) const noexcept {
  const int64_t head = round_up((ranks_ + int64_t(ranks_) * slots_) * kLine, kPage);
  return base_ + head + (int64_t(slot.owner) * slots_ + slot.number) * page_bytes_;
}

bool Ring::is_free(Slot slot) const noexcept {
  return state(slot).use.load(std::memory_order_acquire) == slot.use;
}

bool Ring::is_full(Slot slot, uint32_t arrivals) const noexcept {
  return is_free(slot) && state(slot).arrived.load(std::memory_order_acquire) == arrivals;
}

void Ring::arrive(Slot slot, uint32_t arrivals) noexcept {
  const uint32_t before = state(slot).arrived.fetch_add(1, std::memory_order_acq_rel);
  if (before + 1 == arrivals && slot.owner != rank_) ring(slot.owner);
}

void Ring::release(Slot slot) noexcept {
  state(slot).arrived.store(0, std::memory_order_relaxed);
  state(slot).use.store(slot.use + 1, std::memory_order_release);
  ring_all();
}

void Ring::pass() noexcept {
  bell(rank_).passes.store(++passes_, std::memory_order_release);
  ring_all();
}

bool Ring::all_passed() const noexcept {
  for (int r = 0; r < ranks_; ++r)
    if (int32_t(bell(r).passes.load(std::memory_order_acquire) - passes_) < 0) return false;
  return true;
}

// A sleeper says so before it looks for the last time, and a ringer rings before it asks who
// sleeps: one of the two sees the other (sequentially consistent on both sides).
void Ring::ring(int rank) noexcept {
  bell(rank).rung.fetch_add(1);
  if (bell(rank).asleep.load() != 0) wake(bell(rank).rung);
}

void Ring::ring_all() noexcept {
  for (int r = 0; r < ranks_; ++r)
    if (r != rank_) ring(r);
}

void Ring::wait(const std::function<bool()>& ready, const std::function<bool()>& serve) noexcept {
  Bell& mine = bell(rank_);
  for (int spin = 0; !ready(); ++spin) {
    if (serve()) {
      spin = 0;
      continue;
    }
    if (spin < spins_) {
      relax();
      continue;
    }
    const uint32_t seen = mine.rung.load();
    mine.asleep.store(1);
    if (!ready() && !serve()) sleep_on(mine.rung, seen);
    mine.asleep.store(0);
  }
}

}  // namespace penstock::peers
