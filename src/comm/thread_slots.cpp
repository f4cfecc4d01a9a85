// Slots of ranks that are threads: a mutex for each owner's, and parcels that are moved.
#include "comm/thread_slots.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

namespace penstock::comm {

struct SlotHub {
  struct Slot {
    Parcel parcel;  // peer: who put it
    bool full = false;
  };
  struct Owner {
    std::mutex mutex;
    std::vector<Slot> slots;
    int given = 0;  // slots, from the first on
  };
  explicit SlotHub(int ranks) : owners(size_t(ranks)) {}

  std::vector<Owner> owners;
};

namespace {

class ThreadSlots final : public Slots {
 public:
  ThreadSlots(std::shared_ptr<SlotHub> hub, int rank) : hub_(std::move(hub)), rank_(rank) {}

  Way way_to(int owner) override {
    const auto [found, is_new] = lanes_.try_emplace(owner);
    Lane& lane = found->second;
    SlotHub::Owner& theirs = hub_->owners[size_t(owner)];
    const std::lock_guard lock(theirs.mutex);
    if (is_new && theirs.given < int(theirs.slots.size())) lane.slot = theirs.given++;
    if (lane.slot < 0) return Way::closed;
    take_out(owner, lane, theirs);
    return lane.put ? Way::busy : Way::open;
  }

  void put(int owner, std::vector<std::byte> bytes) override {
    Lane& lane = lanes_.at(owner);
    SlotHub::Owner& theirs = hub_->owners[size_t(owner)];
    const std::lock_guard lock(theirs.mutex);
    theirs.slots[size_t(lane.slot)] = {{rank_, std::move(bytes)}, true};
    lane.put = true;
  }

  std::optional<Parcel> released() override {
    for (auto& [owner, lane] : lanes_) {
      SlotHub::Owner& theirs = hub_->owners[size_t(owner)];
      const std::lock_guard lock(theirs.mutex);
      take_out(owner, lane, theirs);
    }
    if (back_.empty()) return std::nullopt;
    Parcel parcel = std::move(back_.back());
    back_.pop_back();
    return parcel;
  }

  std::span<const std::byte> on_its_way_to(int owner) const override {
    const auto lane = lanes_.find(owner);
    if (lane == lanes_.end() || !lane->second.put) return {};
    SlotHub::Owner& theirs = hub_->owners[size_t(owner)];
    const std::lock_guard lock(theirs.mutex);
    return theirs.slots[size_t(lane->second.slot)].parcel.bytes;
  }

  std::vector<Parcel> take_back() override {
    std::vector<Parcel> all = std::exchange(back_, {});
    for (auto& [owner, lane] : lanes_) {
      if (!lane.put) continue;
      SlotHub::Owner& theirs = hub_->owners[size_t(owner)];
      const std::lock_guard lock(theirs.mutex);
      all.push_back({owner, theirs.slots[size_t(lane.slot)].parcel.bytes});
    }
    return all;
  }

  bool used() const noexcept override { return !lanes_.empty(); }
  bool quiet() const noexcept override {
    return std::ranges::none_of(lanes_, [](const auto& entry) { return entry.second.put; });
  }

  std::optional<Parcel> receive() override {
    SlotHub::Owner& own = hub_->owners[size_t(rank_)];
    const std::lock_guard lock(own.mutex);
    const auto full = std::ranges::find_if(own.slots, &SlotHub::Slot::full);
    if (full == own.slots.end()) return std::nullopt;
    held_ = size_t(full - own.slots.begin());
    return full->parcel;
  }

  void release() override {
    SlotHub::Owner& own = hub_->owners[size_t(rank_)];
    const std::lock_guard lock(own.mutex);
    own.slots[held_].full = false;
  }

  void reopen() override {
    lanes_.clear();
    SlotHub::Owner& own = hub_->owners[size_t(rank_)];
    const std::lock_guard lock(own.mutex);
    own.given = 0;
  }
  void free() override {}
  Result<void> status() const override { return {}; }

 private:
  struct Lane {
    int slot = -1;     // none was left
    bool put = false;  // a parcel that was not given back yet
  };

  // REQUIRES the owner's mutex.
  void take_out(int owner, Lane& lane, SlotHub::Owner& theirs) {
    if (!lane.put || theirs.slots[size_t(lane.slot)].full) return;
    back_.push_back({owner, std::move(theirs.slots[size_t(lane.slot)].parcel.bytes)});
    lane.put = false;
  }

  const std::shared_ptr<SlotHub> hub_;
  const int rank_;
  std::map<int, Lane> lanes_;
  std::vector<Parcel> back_;
  size_t held_ = 0;  // that receive() gave out
};

}  // namespace

std::shared_ptr<SlotHub> make_slot_hub(int ranks, const SlotsShape& shape) {
  auto hub = std::make_shared<SlotHub>(ranks);
  for (SlotHub::Owner& owner : hub->owners) owner.slots.resize(size_t(shape.slots));
  return hub;
}

std::unique_ptr<Slots> make_thread_slots(std::shared_ptr<SlotHub> hub, int rank) {
  return std::make_unique<ThreadSlots>(std::move(hub), rank);
}

}  // namespace penstock::comm
