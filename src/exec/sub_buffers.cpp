#include "exec/sub_buffers.hpp"

#include <algorithm>

#include "base/clock.hpp"

namespace penstock::exec {

SubBuffers::SubBuffers(int64_t load_bytes, int64_t limit_bytes) noexcept
    : load_bytes_(load_bytes),
      most_loads_(int(std::clamp<int64_t>(limit_bytes / load_bytes, 1, 1 << 30))) {}

Load* SubBuffers::filling(int owner, Limit limit) {
  const auto found = by_owner_.find(owner);
  if (found != by_owner_.end() && found->second.loads.back().room() > 0)
    return &to_append(found->second);
  if (loads_ >= most_loads_ && limit == Limit::kept) return nullptr;
  Packed& packed = found != by_owner_.end() ? add_load(found->second) : add_owner(owner);
  ++loads_;
  return &to_append(packed);
}

Load& SubBuffers::to_append(Packed& packed) {
  if (packed.came_s == kNotYet_s) packed.came_s = now_s();
  return packed.loads.back();
}

// Of the next two: where there is no memory, the books are as they were, and every owner in them
// has a load.
SubBuffers::Packed& SubBuffers::add_owner(int owner) {
  Packed packed{.loads = {}, .bytes = 0, .came_s = kNotYet_s};
  packed.loads.push_back(next_load());
  return by_owner_.emplace(owner, std::move(packed)).first->second;
}

SubBuffers::Packed& SubBuffers::add_load(Packed& packed) {
  const int64_t bytes = packed.data_bytes();
  packed.loads.push_back(next_load());
  packed.bytes = bytes;
  return packed;
}

Load SubBuffers::next_load() {
  std::vector<std::byte> memory;
  if (!idle_.empty()) {
    memory = std::move(idle_.back());
    idle_.pop_back();
  }
  return Load(load_bytes_, std::move(memory));
}

std::vector<Load> SubBuffers::take(int owner) {
  const auto found = by_owner_.find(owner);
  if (found == by_owner_.end()) return {};
  std::vector<Load> taken = std::move(found->second.loads);
  by_owner_.erase(found);
  return taken;
}

std::optional<Load> SubBuffers::take_first(int owner) {
  const auto found = by_owner_.find(owner);
  if (found == by_owner_.end()) return std::nullopt;
  Packed& packed = found->second;
  Load first = std::move(packed.loads.front());
  packed.loads.erase(packed.loads.begin());
  if (packed.loads.empty())
    by_owner_.erase(found);
  else
    packed.bytes -= first.data_bytes();
  return first;
}

void SubBuffers::forget_copies(int owner, double came_s) {
  const auto found = by_owner_.find(owner);
  if (found == by_owner_.end()) return;
  for (Load& load : found->second.loads) {
    if (!load.is_copied()) continue;
    load.note_not_copied();
    found->second.came_s = std::min(found->second.came_s, came_s);
  }
}

void SubBuffers::give_back(std::vector<std::byte> parcel) {
  --loads_;
  if (loads_ + int(idle_.size()) < most_loads_) idle_.push_back(std::move(parcel));
}

std::optional<int> SubBuffers::fullest() const {
  const auto most = std::ranges::max_element(
      by_owner_, {}, [](const auto& entry) { return entry.second.data_bytes(); });
  if (most == by_owner_.end()) return std::nullopt;
  return most->first;
}

bool SubBuffers::has_full(int owner) const {
  const auto found = by_owner_.find(owner);
  return found != by_owner_.end() && found->second.loads.front().room() == 0;
}

Extent SubBuffers::hull_of(int owner) const {
  Extent all;
  const auto found = by_owner_.find(owner);
  if (found == by_owner_.end()) return all;
  for (const Load& load : found->second.loads) all = exec::hull_of(all, load.hull());
  return all;
}

double SubBuffers::came_s(int owner) const { return by_owner_.at(owner).came_s; }

std::vector<int> SubBuffers::owners() const {
  std::vector<int> all;
  for (const auto& [owner, packed] : by_owner_) all.push_back(owner);
  return all;
}

std::vector<int> SubBuffers::owners_since(double s) const {
  std::vector<int> old;
  for (const auto& [owner, packed] : by_owner_)
    if (packed.came_s <= s) old.push_back(owner);
  return old;
}

size_t SubBuffers::memory_bytes() const noexcept {
  return by_owner_.bucket_count() * sizeof(void*) +
         by_owner_.size() * (sizeof(std::pair<const int, Packed>) + 2 * sizeof(void*));
}

}  // namespace penstock::exec
