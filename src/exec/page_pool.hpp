// File pages in memory that the ranks of a node share, filled by their independent writes: the
// second stage of liao-2007's write-behind. A page of the file has at most one place here, wherever
// its bytes come from; it is taken at the first byte and given back when its bytes are in the file.
//
// Whoever fills a page pins it, and never waits while it does. Whoever writes it closes it first:
// then nobody pins it any more, and those who come wait until it has left. So there is no circle.
// Who writes which page, the pool does not decide (exec/page_owners.hpp).
//
// Memory that is all zero is an empty pool, so nobody has to prepare it. Thread-safe, for all
// processes that share the segment.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/extent.hpp"
#include "comm/shared_segment.hpp"
#include "exec/dirty_map.hpp"
#include "exec/page_losses.hpp"
#include "exec/pipeline.hpp"

namespace penstock::exec {

struct PoolShape {
  int64_t page_bytes = 0;  // a multiple of 4096
  int slots = 0;           // pages that it holds at a time
  int guests = 0;          // who may hold a page, in place of pinning it
  size_t at = 0;           // where it begins in the segment, a multiple of 4096
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
  static size_t zeroed_bytes_for(PoolShape shape);
  // REQUIRES a segment of these bytes, the same shape on all who share it.
  static Result<std::unique_ptr<PagePool>> make(std::shared_ptr<comm::SharedSegment> segment,
                                                PoolShape shape);

  int64_t page_bytes() const noexcept { return shape_.page_bytes; }
  int slots_in_all() const noexcept { return shape_.slots; }
  int64_t most_bytes() const noexcept { return shape_.slots * shape_.page_bytes; }
  // The last page that a file can have ends where offsets do.
  Extent extent(int64_t page) const noexcept {
    return Extent::of(page * shape_.page_bytes, shape_.page_bytes);
  }

  // --- Filling ---
  enum class Pinning : uint8_t {
    pinned,
    leaving,    // the page is here, on its way into the file: wait until it has left
    no_memory,  // no slot that has memory is free, but there are others: add_slot()
    no_room,    // no slot is free
  };
  // The page: where it is already, or in a free slot.
  std::pair<Pinning, Stay> pin(int64_t page);
  // This process is about to store these bytes of a page that it has pinned: its memory is mapped
  // by few calls, in place of a fault for each 4 KiB of every rank; around them the first time that
  // it comes to this memory, all of it the second. Returns the part of the page in which no store
  // faults from now on.
  Extent come_to(const Stay& stay, Extent bytes) noexcept;
  bool is_mapped(const Stay& stay) const noexcept;  // all of it
  // Takes memory for one slot more, for whoever is the first to want it. false: the machine has
  // none, or had none half a second ago.
  bool add_slot(double now_s) noexcept;
  // Once more, cheaply. false: it is on its way into the file.
  bool pin(const Stay& stay) noexcept;
  std::byte* memory(const Stay& stay) const noexcept;
  DirtyMap dirty(const Stay& stay) const noexcept;
  // Where a page's bytes go, for as long as its stay: what small writes would ask for again and
  // again.
  struct Place {
    Stay stay;
    std::byte* memory;
    Extent extent;
    DirtyMap dirty;
  };
  Place place(const Stay& stay) const noexcept {
    return {stay, memory(stay), extent(stay.page), dirty(stay)};
  }
  // Gives the pin back. Whether the page looks full.
  bool unpin(const Stay& stay, int64_t newly_dirty) noexcept;
  // As a pin, without a word that other fillers would have to see: a guest writes down in memory of
  // its own which page it holds, and who closes the page looks at its guests
  // (docs/decisions/0057-guests.md). One page at a time for each of shape.guests. false: the page
  // is on its way into the file. REQUIRES come_as_guest() in this stay.
  bool hold(int guest, const Stay& stay) noexcept;
  void let_go(int guest, const Stay& stay) noexcept;
  // REQUIRES a pin.
  void come_as_guest(int guest, const Stay& stay) noexcept;

  // --- Full pages, for whoever takes a new one ---
  static constexpr int kMostOffered = 8;
  // false: so many are offered already.
  bool offer(const Stay& full) noexcept;
  bool has_offers() const noexcept;
  // The caller closes it, which fails if it has left meanwhile.
  std::optional<Stay> take_offer() noexcept;
  // Whether some page is offered that the caller should write: not while another rank has its turn,
  // since a file takes one writer at a time, and the next would wait for it. `now_s` by the
  // machine's clock.
  bool wants_writer(double now_s) const noexcept;
  // While it is there, its maker writes a page. A hint: who dies in its turn holds up nobody.
  class Turn {
   public:
    Turn(PagePool& pool, double now_s) noexcept;
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn();

   private:
    PagePool& pool_;
    const double since_s_;
  };

  // --- Leaving ---
  // Marks a page that is to be written soon; it may be filled until then. false: it was marked, or
  // is on its way.
  bool want(const Stay& stay) noexcept;
  // true: nobody fills it any more, and the caller, `writer`, writes it and then releases it.
  // false: somebody else does, or it has left.
  bool close(const Stay& stay, int writer) noexcept;
  // Of a page that `from` closed and will never release: true: `to` writes it, as if closed by it:
  // nobody fills it any more.
  // Its slot holds no other page after this one, in case `from` writes yet.
  bool take_over(const Stay& stay, int from, int to) noexcept;
  // By its writer. Harmless when it has left, or was taken over.
  void release(const Stay& stay, int writer) noexcept;
  // false: a while has passed, and it is still here.
  bool wait_until_left(const Stay& stay) const noexcept;

  std::optional<Stay> find(int64_t page) const noexcept;  // in the pool, perhaps on its way out
  // Of those that are neither wanted nor on their way.
  std::optional<Stay> least_recently_used() const noexcept;
  // Until some page has left since `seen`. false: a while has passed, and none has.
  uint32_t departures() const noexcept;
  uint32_t completed() const noexcept;  // pages that were full when they left
  bool wait_for_departure(uint32_t seen) const noexcept;
  // Without sleep: until then, or, in a call that may write a page itself, wants_writer().
  bool look_for_room(uint32_t seen, Returns returns, int looks, double seconds) const noexcept;

  struct Seen {
    Stay stay;
    bool wanted = false;
    bool leaving = false;
    int writer = -1;    // of one that is leaving; -1: not known
    double came_s = 0;  // by the machine's clock
  };
  // Slots that may ever have held a page, and what is in one now.
  int used() const noexcept;
  std::optional<Seen> look(int slot) const noexcept;
  int held() const noexcept;  // pages that are in one
  bool empty() const noexcept { return held() == 0; }
  bool usable() const noexcept;  // some slot has memory to give out, or was not asked for it

  // Several handles of one process fill pages: whose bytes a page holds, no rank knows any more.
  void note_several_handles() noexcept;
  bool has_several_handles() const noexcept;

  // What could not be written, told to all who share the pool.
  PageLosses& losses() const noexcept;

 private:
  struct Header;
  struct Slot;
  struct Guest;

  PagePool(std::shared_ptr<comm::SharedSegment> segment, PoolShape shape);
  static size_t table_bytes(PoolShape shape);
  static size_t map_bytes(PoolShape shape);
  size_t area_at(int slot) const noexcept;
  void note_use(Slot& slot) noexcept;
  uint32_t& bucket(int64_t page) const noexcept;
  Slot* slots() const noexcept;
  Guest* guests() const noexcept;
  bool is_held(const Stay& stay) const noexcept;
  void wait_until_filled(const Stay& stay) const noexcept;  // REQUIRES that it is leaving
  std::optional<Stay> find_locked(int64_t page) const noexcept;
  std::optional<Stay> settle_locked(int64_t page) noexcept;
  void expect_stores(const Stay& stay, Extent bytes) noexcept;

  std::shared_ptr<comm::SharedSegment> segment_;
  PoolShape shape_;
  Header* header_;
  enum class Come : uint8_t { never, to_a_part, to_all };
  std::vector<std::atomic<Come>> come_to_;  // slots, by this process
};

}  // namespace penstock::exec
