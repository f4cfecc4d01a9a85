// Loads that a rank puts into the memory of their owners itself (comm/slots.hpp): at most one for
// each owner is there and not yet taken out; and which bytes the file may still lack.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/extent.hpp"
#include "comm/slots.hpp"
#include "exec/pipeline.hpp"
#include "exec/sub_buffers.hpp"

namespace penstock::exec {

class PutLoads {
 public:
  enum class Which : uint8_t { full, any };

  explicit PutLoads(std::unique_ptr<comm::Slots> slots) : slots_(std::move(slots)) {}

  // --- As a sender ---
  // As many of `from` as the owner's slot takes, the oldest first: one, or none.
  Traffic put(int owner, SubBuffers& from, Which which);
  // Whether an owner has taken any out since; these go back.
  bool collect(SubBuffers& to);
  // Owners that may not have brought into the file what was put to them.
  std::vector<int> owners() const;
  bool has(int owner) const { return put_.contains(owner); }
  // Whether it may be one of those bytes: their hull is known.
  bool overlaps(int owner, Extent where) const;
  // The owner is to flush; it is none of owners() any more when it has. Until then nothing else is
  // put to it. ask_owners() puts the questions for which there is room.
  void ask(int owner);
  void ask_owners();
  struct Older {
    int owner;
    std::span<const std::byte> parcel;
  };
  // Parcels that came then or before, and that their owners may not have taken out; each once.
  // Until the next call of put(), collect() or ask_owners(); by any thread.
  std::vector<Older> older(double then_s);
  // What was put and maybe not taken out.
  std::vector<comm::Parcel> take_back() { return slots_->take_back(); }

  // --- As an owner; by any thread ---
  std::optional<comm::Parcel> receive() { return slots_->receive(); }
  void release() { slots_->release(); }

  // --- Together with all other ranks ---
  bool used() const noexcept { return slots_->used(); }
  bool quiet() const noexcept { return slots_->quiet(); }
  // All that was put anywhere is in its owner's pages; comm::Slots::reopen().
  void reopen() { slots_->reopen(); }
  // It is in the file, too.
  void forget() { put_.clear(); }
  void free() { slots_->free(); }

  Result<void> status() const { return slots_->status(); }

 private:
  enum class Asked : uint8_t { no, wanted, yes };
  struct Put {
    Extent hull;
    Asked asked = Asked::no;
    // Of the load that was put last.
    double came_s = 0;
    bool told_older = false;
  };

  const std::unique_ptr<comm::Slots> slots_;
  std::unordered_map<int, Put> put_;  // by owner
};

}  // namespace penstock::exec
