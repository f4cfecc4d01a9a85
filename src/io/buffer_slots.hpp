// The leases of mechanisms that fill ordinary memory, their own or somebody else's: a fixed number
// of buffers, each busy from lease to reap. Thread-safe as a mechanism must be (io/mechanism.hpp):
// one thread may lease while another settles and reaps.
#pragma once

#include <array>
#include <cassert>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/aligned_buffer.hpp"
#include "io/mechanism.hpp"

namespace penstock::io {

class BufferSlots {
 public:
  // Two, so that one page is filled while the other is under way.
  static constexpr int kSlots = 2;

  // The memory begins `shift` bytes behind an address that is aligned (AlignedBuffer::kAlignment).
  Result<Lease> lease(Extent where, size_t shift = 0) {
    const std::lock_guard lock(mutex_);
    for (int i = 0; i < kSlots; ++i) {
      Slot& s = slots_[size_t(i)];
      if (s.busy) continue;
      auto memory = memory_of(s, shift + size_t(where.size()));
      if (!memory) return tl::unexpected(std::move(memory).error());
      s.busy = true;
      return Lease{where, memory->subspan(shift), i};
    }
    return fail(ErrorClass::internal, "lease", "more leases at a time than slots");
  }

  // As MechanismFile::use_memory.
  Result<void> use_memory(std::span<const std::span<std::byte>> buffers) {
    const std::lock_guard lock(mutex_);
    if (!buffers.empty() && buffers.size() != size_t(kSlots))
      return fail(
          ErrorClass::internal, "use_memory",
          std::to_string(buffers.size()) + " buffers for " + std::to_string(kSlots) + " slots");
    if (!buffers.empty() && lost_) return lost_memory();
    for (size_t i = 0; i < slots_.size(); ++i) {
      assert(!slots_[i].busy);
      slots_[i].given = buffers.empty() ? std::span<std::byte>() : buffers[i];
    }
    return {};
  }

  // All of what leases of a slot are parts of. It stays while the slot is leased.
  std::span<std::byte> memory(int slot) {
    const std::lock_guard lock(mutex_);
    const Slot& s = slots_[size_t(slot)];
    return s.given.empty() ? s.memory.first(s.memory.size()) : s.given;
  }

  // As MechanismFile::has_lost_memory.
  bool has_lost_memory() {
    const std::lock_guard lock(mutex_);
    return lost_;
  }

  // Takes the memory away. What is leased now stays usable as long as the caller keeps it. Memory
  // that was given cannot be kept: nothing is leased from it any more.
  std::array<AlignedBuffer, kSlots> take_memory() noexcept {
    std::array<AlignedBuffer, kSlots> taken;
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < taken.size(); ++i) {
      std::swap(taken[i], slots_[i].memory);
      lost_ = lost_ || !slots_[i].given.empty();
    }
    return taken;
  }

  // Of mechanisms that write inside submit(): how it went, and the slot back, when it is reaped.
  void settle(int slot, std::optional<Fault> fault) {
    const std::lock_guard lock(mutex_);
    assert(settled_count_ < settled_.size());
    settled_[(oldest_ + settled_count_++) % settled_.size()] = {slot, std::move(fault)};
  }
  std::optional<Fault> reap_settled() {
    const std::lock_guard lock(mutex_);
    if (settled_count_ == 0) return std::nullopt;
    Settled& oldest = settled_[oldest_];
    oldest_ = (oldest_ + 1) % settled_.size();
    --settled_count_;
    free(oldest.slot);
    return std::exchange(oldest.fault, std::nullopt);
  }

  void give_back(int slot) noexcept {
    const std::lock_guard lock(mutex_);
    free(slot);
  }

 private:
  struct Slot {
    AlignedBuffer memory;
    std::span<std::byte> given;  // instead of `memory`, unless empty
    bool busy = false;
  };

  struct Settled {
    int slot = 0;
    std::optional<Fault> fault;
  };

  void free(int slot) noexcept {
    assert(slot >= 0 && slot < kSlots && slots_[size_t(slot)].busy);
    slots_[size_t(slot)].busy = false;
  }

  static tl::unexpected<Error> lost_memory() {
    return fail(ErrorClass::io, "lease",
                "writes whose end is not known may still read the memory that was given");
  }

  Result<std::span<std::byte>> memory_of(Slot& s, size_t bytes) const {
    if (!s.given.empty()) {
      if (lost_) return lost_memory();
      if (bytes <= s.given.size()) return s.given.first(bytes);
      return fail(
          ErrorClass::internal, "lease",
          std::to_string(bytes) + " bytes of a buffer of " + std::to_string(s.given.size()));
    }
    if (auto got = s.memory.reserve(bytes); !got) return tl::unexpected(std::move(got).error());
    return s.memory.first(bytes);
  }

  std::mutex mutex_;  // of all that follows; never held while something is written
  std::array<Slot, kSlots> slots_;
  // Invariant: settled_[oldest_ ...], settled_count_ of them, are busy and not reaped.
  std::array<Settled, kSlots> settled_;
  size_t oldest_ = 0, settled_count_ = 0;
  bool lost_ = false;  // take_memory() could not take what was given
};

// The bytes of `part`, which lies in `whole`.
inline std::span<const std::byte> part_of(std::span<const std::byte> bytes, Extent whole,
                                          Extent part) noexcept {
  assert(whole.begin <= part.begin && part.end <= whole.end);
  return bytes.subspan(size_t(part.begin - whole.begin), size_t(part.size()));
}

}  // namespace penstock::io
