// The leases of mechanisms that fill ordinary memory: a fixed number of buffers, each busy from
// lease to reap.
#pragma once

#include <array>
#include <cassert>

#include "base/aligned_buffer.hpp"
#include "io/mechanism.hpp"

namespace penstock::io {

class BufferSlots {
 public:
  // Two, so that one page is filled while the other is under way.
  static constexpr int kSlots = 2;

  Result<Lease> lease(Extent where) {
    for (int i = 0; i < kSlots; ++i) {
      Slot& s = slots_[size_t(i)];
      if (s.busy) continue;
      if (auto got = s.memory.reserve(size_t(where.size())); !got)
        return tl::unexpected(std::move(got).error());
      s.busy = true;
      return Lease{where, s.memory.first(size_t(where.size())), i};
    }
    return fail(ErrorClass::internal, "lease", "more leases at a time than slots");
  }

  void give_back(int slot) noexcept {
    assert(slot >= 0 && slot < kSlots && slots_[size_t(slot)].busy);
    slots_[size_t(slot)].busy = false;
  }

 private:
  struct Slot {
    AlignedBuffer memory;
    bool busy = false;
  };
  std::array<Slot, kSlots> slots_;
};

// The bytes of a lease that belong to `e`.
inline std::span<const std::byte> part_of(const Lease& lease, Extent e) noexcept {
  assert(lease.where.begin <= e.begin && e.end <= lease.where.end);
  return lease.memory.subspan(size_t(e.begin - lease.where.begin), size_t(e.size()));
}

}  // namespace penstock::io
