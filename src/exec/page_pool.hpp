// File pages in memory that the ranks of a node share, filled by their independent writes: the
// second stage of liao-2007's write-behind. A page of the file has at most one place here, wherever
// its bytes come from; it is taken at the first byte and given back when its bytes are in the file.
//
// Whoever fills a page pins it, and never waits while it does. Whoever writes it closes it first:
// then nobody pins it any more, and those who come wait until it has left. So there is no circle.
//
// Memory that is all zero is an empty pool, so nobody has to prepare it. Thread-safe, for all
// processes that share the segment.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "base/extent.hpp"
#include "comm/shared_segment.hpp"
#include "exec/dirty_map.hpp"
#include "exec/pipeline.hpp"

namespace penstock::exec {

struct PoolShape {
  int64_t page_bytes = 0;  // a multiple of 4096
  int slots = 0;           // pages that it holds at a time
};

class PagePool {
 public:
  // One stay of a page in a slot.
  struct Stay {
    int slot = -1;
    uint32_t number = 0;  // of the slot's stays
    int64_t page = -1;    // of the file
    friend bool operator==(const Stay&, const Stay&) = default;
  };

  static size_t bytes_for(PoolShape shape);  // of the segment
  // REQUIRES a zeroed segment of bytes_for(shape), the same shape on all who share it.
  static Result<std::unique_ptr<PagePool>> make(std::shared_ptr<comm::SharedSegment> segment,
                                                PoolShape shape);

  int64_t page_bytes() const noexcept { return shape_.page_bytes; }
  // The last page that a file can have ends where offsets do.
  Extent extent(int64_t page) const noexcept {
    const Off begin = page * shape_.page_bytes;
    return {begin, begin + std::min(shape_.page_bytes, std::numeric_limits<Off>::max() - begin)};
  }

  // --- Filling ---
  // The page, pinned: where it is already, or in a free slot. nullopt: there is none.
  std::optional<Stay> pin(int64_t page);
  // Once more, cheaply. false: it is on its way into the file.
  bool pin(const Stay& stay) noexcept;
  std::byte* memory(const Stay& stay) const noexcept;
  DirtyMap dirty(const Stay& stay) const noexcept;
  // Gives the pin back. Whether the page looks full.
  bool unpin(const Stay& stay, int64_t newly_dirty) noexcept;

  // --- Leaving ---
  // true: nobody fills it any more, and the caller writes it and then releases it. false: somebody
  // else does, or it has left.
  bool close(const Stay& stay) noexcept;
  void release(const Stay& stay) noexcept;
  void wait_until_left(const Stay& stay) const noexcept;

  std::optional<Stay> find(int64_t page) const noexcept;     // in the pool, perhaps on its way out
  std::optional<Stay> least_recently_used() const noexcept;  // of those that are not on their way
  // Until some page has left since `seen`, or a while has passed.
  uint32_t departures() const noexcept;
  void wait_for_departure(uint32_t seen) const noexcept;

  bool empty() const noexcept;
  // Pages that are in the pool now, in file order: all, or those that came before then.
  std::vector<Stay> stays(double came_before_s = std::numeric_limits<double>::max()) const;
  bool usable() const noexcept;  // the machine had memory for some slot, or was not asked

  // --- What could not be written, told to all who share the pool ---
  void lost(Extent where, const Error& why) noexcept;
  int64_t failures() const noexcept;
  void add_losses(StagedNotes& to) const;

 private:
  struct Header;
  struct Slot;

  PagePool(std::shared_ptr<comm::SharedSegment> segment, PoolShape shape);
  static size_t table_bytes(PoolShape shape);
  static size_t map_bytes(PoolShape shape);
  size_t area_at(int slot) const noexcept;
  uint32_t& bucket(int64_t page) const noexcept;
  Slot* slots() const noexcept;
  std::optional<Stay> find_locked(int64_t page) const noexcept;
  std::optional<Stay> settle_locked(int64_t page) noexcept;
  std::optional<int> free_slot_locked() noexcept;

  std::shared_ptr<comm::SharedSegment> segment_;
  PoolShape shape_;
  Header* header_;
};

}  // namespace penstock::exec
